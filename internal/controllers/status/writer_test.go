package status

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/test/process"
)

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
)

func accepted(generation int64, at metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: "this profile is used for the kind",
		ObservedGeneration: generation, LastTransitionTime: at,
	}
}

func refused(reason, message string, generation int64, at metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: at,
	}
}

func TestCondition(t *testing.T) {
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue}
	for sentence, c := range map[string]struct {
		has     []metav1.Condition
		refused string // the reason
		want    metav1.Condition
		differs bool
	}{
		"a new one is accepted":          {nil, "", accepted(2, now), true},
		"a new one is refused":           {nil, "Invalid", refused("Invalid", "class is missing", 2, now), true},
		"nothing changed":                {[]metav1.Condition{other, accepted(2, before)}, "", accepted(2, before), false},
		"only its generation changed":    {[]metav1.Condition{accepted(1, before)}, "", accepted(2, before), true},
		"it was accepted and is invalid": {[]metav1.Condition{accepted(1, before)}, "Invalid", refused("Invalid", "class is missing", 2, now), true},
		"the reason changed, not the status": {
			[]metav1.Condition{refused("Conflicted", "x", 2, before)}, "Invalid", refused("Invalid", "class is missing", 2, before), true},
		"a condition of another writer is corrected": {
			[]metav1.Condition{refused("Odd", "x", 2, before)}, "", accepted(2, now), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := profile("p", 2, append([]metav1.Condition{}, c.has...)...)
			if c.refused != "" {
				s.Refused, s.Reason, s.Message = true, c.refused, "class is missing"
			}
			got, differs := condition(s, now)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.differs, differs)
			assert.Equal(t, c.has, append([]metav1.Condition(nil), s.Conditions...), "the argument is not modified")
		})
	}
}

// profile returns the state of a profile that is in force.
func profile(name string, generation int64, conditions ...metav1.Condition) cache.Status {
	return cache.Status{
		Ref:        api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: name},
		Generation: generation, Reason: "Accepted", Message: "this profile is used for the kind", Conditions: conditions,
	}
}

func TestLongMessageIsTruncated(t *testing.T) {
	got, _ := condition(cache.Status{Refused: true, Reason: "Invalid", Message: strings.Repeat("x", 40_000)}, now)
	assert.Len(t, got.Message, 32768, "the API server takes no more")
}

// writerFixture is a Writer with a fake API server.
type writerFixture struct {
	*Writer
	changed chan struct{}

	mu       sync.Mutex
	profiles []cache.Status
	fail     error
	writes   []string
	log      []string
	stop     func() // ends Start
}

func newWriterFixture(t *testing.T, profiles ...cache.Status) *writerFixture {
	t.Helper()
	d := &writerFixture{changed: make(chan struct{}, 1), profiles: profiles}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("patch", "policyprofiles", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		patch := a.(clienttesting.PatchAction)
		assert.Equal(t, "status", patch.GetSubresource())
		d.writes = append(d.writes, string(patch.GetPatch()))
		return true, &unstructured.Unstructured{}, d.fail
	})
	d.Writer = &Writer{
		Client: client, Changed: d.changed,
		Statuses: func() []cache.Status {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.profiles
		},
		Log: funcr.New(func(_, args string) { d.log = append(d.log, args) }, funcr.Options{}),
	}
	d.start(t)
	return d
}

// start begins a term, which stop ends.
func (d *writerFixture) start(t *testing.T) {
	t.Helper()
	d.stop = process.Run(t, d.Start)
	synctest.Wait()
}

// written returns and resets the requests, as JSON.
func (d *writerFixture) written(t *testing.T) []map[string]any {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []map[string]any
	for _, w := range d.writes {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(w), &one))
		out = append(out, one)
	}
	d.writes = nil
	return out
}

func (d *writerFixture) set(fail error, profiles ...cache.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail, d.profiles = fail, profiles
}

func TestUnchangedConditionIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := profile("new", 3)
		fresh.UID = "u"
		d := newWriterFixture(t,
			profile("right", 1, accepted(1, before)),
			fresh)
		got := d.written(t)
		require.Len(t, got, 1)
		assert.Equal(t, map[string]any{
			"apiVersion": "overrule.dev/v1alpha1", "kind": "PolicyProfile", "metadata": map[string]any{"name": "new", "uid": "u"},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Accepted", "status": "True", "reason": "Accepted", "message": "this profile is used for the kind",
				"observedGeneration": float64(3), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			}}},
		}, got[0])

		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Empty(t, d.written(t), "no unnecessary writes")
		assert.Empty(t, d.log)
		assert.True(t, d.NeedLeaderElection())
	})
}

func TestChangeIsWrittenImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWriterFixture(t)
		d.set(nil, profile("new", 1))
		d.changed <- struct{}{}
		synctest.Wait()
		assert.Len(t, d.written(t), 1)
	})
}

func TestSecondTermWritesWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWriterFixture(t, profile("a", 1))
		assert.Len(t, d.written(t), 1)
		d.stop()
		d.set(nil, profile("a", 1, accepted(1, before)), profile("b", 1))
		d.changed <- struct{}{}
		time.Sleep(2 * time.Hour)
		assert.Empty(t, d.written(t), "it does not lead")
		d.start(t)
		assert.NotEmpty(t, d.written(t))
		d.set(nil, profile("c", 1))
		d.changed <- struct{}{}
		synctest.Wait()
		assert.Len(t, d.written(t), 1)
	})
}

func TestFailedWriteIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWriterFixture(t)
		all := []cache.Status{profile("a", 1), profile("b", 1)}
		d.set(errors.New("refused"), all...)
		d.changed <- struct{}{}
		synctest.Wait()
		assert.Len(t, d.written(t), 2, "one failure does not prevent other writes")
		require.Len(t, d.log, 1)
		assert.Contains(t, d.log[0], `cannot write the status of profiles and constraints`)
		assert.Contains(t, d.log[0], `PolicyProfile a: refused`)
		assert.Contains(t, d.log[0], `PolicyProfile b: refused`)

		d.set(nil, all...)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, d.written(t), 2)
	})
}

func TestDeletedProfileIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWriterFixture(t)
		for _, gone := range []error{
			apierrors.NewNotFound(version.WithResource("policyprofiles").GroupResource(), "a"),
			apierrors.NewConflict(version.WithResource("policyprofiles").GroupResource(), "a", errors.New("another uid")),
		} {
			d.set(gone, profile("a", 1))
			d.changed <- struct{}{}
			synctest.Wait()
			assert.Len(t, d.written(t), 1)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			assert.Empty(t, d.written(t))
		}
		assert.Empty(t, d.log)
	})
}
