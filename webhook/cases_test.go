package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/cases"
)

// The webhook gives the verdicts of the table that every entry point is tested with.
func TestVerdictCases(t *testing.T) {
	for _, c := range cases.Load(t) {
		t.Run(c.File, func(t *testing.T) {
			d := newTestServer(t, Options{Guard: &guard.Guard{Permissions: rights.Fixed(c.MayOverride, nil), BlastRadius: c.BlastRadiusLimit, MatchLimit: c.MaxMatches}})
			d.opts.Now = func() time.Time { return cases.Now }
			d.opts.Store.SetKinds(snapshot.KindsOf())
			d.exist(t, c.Against)
			for i := range c.Changes {
				d.verdict(t, &c.Changes[i])
			}
		})
	}
}

// The webhook gives the verdicts of the rows of test/cases/guardrails, with and without the
// right to override.
func TestGuardrails(t *testing.T) {
	for _, r := range cases.Guardrails(t) {
		t.Run(r.File+"/"+r.Name, func(t *testing.T) {
			d := newTestServer(t, Options{Guard: &guard.Guard{}})
			d.opts.Now = func() time.Time { return cases.Now }
			d.opts.Store.SetKinds(snapshot.KindsOf())
			against := r.Against
			for i := range r.Steps {
				d.exist(t, against)
				w := &r.Steps[i]
				for _, may := range []bool{true, false} {
					if may && w.Denied == "" {
						continue
					}
					d.opts.Guard.Permissions = rights.Fixed(may, nil)
					got := d.evaluate(t, asRequest(t, &w.Change))
					assert.Empty(t, w.Mismatch(got, may), "step %d, with the right to override: %t: %+v", i, may, got)
				}
				a := d.validated(t, asRequest(t, &w.Change))
				assert.Equal(t, w.Denied == "", a.Allowed)
				assertWhole(t, a.Warnings)
				if !a.Allowed {
					assert.Contains(t, a.Result.Message, string(w.Denied)+": ")
				} else {
					d.made(t, &w.Change)
				}
				against = w.After(against)
			}
		})
	}
}

// exist makes objects exist.
func (d *testServer) exist(t *testing.T, objects []cases.Object) {
	t.Helper()
	for i := range objects {
		d.put(t, &objects[i])
	}
}

// put does what the informers would do about an object.
func (d *testServer) put(t *testing.T, o *cases.Object) {
	t.Helper()
	gvk := o.GroupVersionKind()
	ref := api.PolicyKind{Group: gvk.Group, Kind: gvk.Kind}
	v, _ := d.opts.Store.View()
	object, err := v.Decode(ref, v.Kind(ref), marshalled(t, o), policykind.InFlight(cases.Now))
	require.NoError(t, err)
	if ref != policykind.KindDefinition && ref != policykind.KindProfile {
		d.opts.Store.Apply(snapshot.Put(object))
		return
	}
	kinds := v.KindConfig().With(snapshot.Put(object))
	d.opts.Store.SetKinds(kinds)
	for _, k := range kinds.All() {
		if v.Kind(k.Ref()) != k {
			d.opts.Store.AddKind(k)
			d.opts.Store.KindListed(k.Ref())
		}
	}
}

// marshalled is the JSON of an object, which may be nil.
func marshalled(t *testing.T, o *cases.Object) []byte {
	t.Helper()
	if o == nil {
		return nil
	}
	data, err := json.Marshal(o)
	require.NoError(t, err)
	return data
}

// asRequest is the request that an API server sends for a change.
func asRequest(t *testing.T, c *cases.Change) *admissionv1.AdmissionRequest {
	t.Helper()
	gvk := c.Object.GroupVersionKind()
	r := &admissionv1.AdmissionRequest{
		UID: uid, Operation: admissionv1.Operation(c.Operation),
		Kind:      metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(),
		OldObject: runtime.RawExtension{Raw: marshalled(t, c.Old)},
	}
	if r.Operation != admissionv1.Delete {
		object := c.Object.DeepCopy()
		created := metav1.NewTime(cases.Now)
		if c.Old != nil {
			created = c.Old.GetCreationTimestamp()
		}
		object.SetCreationTimestamp(created)
		r.Object.Raw = marshalled(t, object)
	}
	return r
}

// evaluate returns the guard's verdict on a request.
func (d *testServer) evaluate(t *testing.T, r *admissionv1.AdmissionRequest) api.Verdict {
	t.Helper()
	v, _ := d.opts.Store.View()
	asked, err := decodeChange(v, r, cases.Now)
	require.NoError(t, err)
	j, err := d.opts.Guard.Evaluate(t.Context(), v, asked, nil)
	require.NoError(t, err)
	return j.Verdict(guard.EnforceDeny)
}

// verdict sends a change to the webhook, compares all that the guard returns for
// it, and makes it if it is allowed.
func (d *testServer) verdict(t *testing.T, c *cases.Change) {
	t.Helper()
	r := asRequest(t, c)
	want, got := c.Verdict, d.evaluate(t, r)
	assert.Equal(t, want, cases.Want{
		Allowed:  got.Allowed,
		Reasons:  cases.Of(got.Reasons, c.Verdict.Reasons),
		Warnings: cases.Of(got.Warnings, c.Verdict.Warnings),
		Changes:  got.Changes,
	})

	a := d.validated(t, r)
	assert.Equal(t, c.Verdict.Allowed, a.Allowed)
	assert.Len(t, a.Warnings, cases.Shown(c.Verdict.Warnings))
	assertWhole(t, a.Warnings)
	if a.Allowed {
		d.made(t, c)
		return
	}
	lines := strings.Split(a.Result.Message, "\n")
	require.Len(t, lines, len(c.Verdict.Reasons))
	for i, want := range c.Verdict.Reasons {
		assert.Equal(t, string(want.Code)+": "+got.Reasons[i].Message, lines[i])
		for _, part := range want.Says {
			assert.Contains(t, lines[i], part)
		}
	}
	assert.True(t, d.mutated(t, r).Allowed)
}

// assertWhole asserts that warnings are passed on by the API server, and that no name in them
// was shortened for that.
func assertWhole(t *testing.T, warnings []string) {
	t.Helper()
	for _, w := range warnings {
		assert.LessOrEqual(t, utf8.RuneCountInString(w), warningLength)
		assert.NotContains(t, w, "…")
	}
}

// made makes a change that was allowed.
func (d *testServer) made(t *testing.T, c *cases.Change) {
	t.Helper()
	if c.Operation == "DELETE" {
		gvk := c.Object.GroupVersionKind()
		d.opts.Store.Apply(snapshot.Delete(api.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()}))
		return
	}
	object := c.Object.DeepCopy()
	if c.Old != nil {
		object.SetCreationTimestamp(c.Old.GetCreationTimestamp())
	} else {
		object.SetCreationTimestamp(metav1.NewTime(cases.Now))
	}
	d.put(t, object)
}
