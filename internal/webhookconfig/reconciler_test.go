package webhookconfig

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// trust is an Authority that a test drives.
type trust struct {
	mu        sync.Mutex
	bundle    string
	changed   chan struct{}
	published []string
}

func newTrust(bundle string) *trust { return &trust{bundle: bundle, changed: make(chan struct{})} }

func (a *trust) CABundle() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []byte(a.bundle)
}

func (a *trust) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *trust) Published(bundle []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.published = append(a.published, string(bundle))
}

func (a *trust) rotate(bundle string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bundle = bundle
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *trust) told() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Compact(slices.Clone(a.published))
}

// office is a registrar in front of an API server that a test plays.
type office struct {
	*Registrar
	api     *fake.Clientset
	trust   *trust
	changed chan struct{}
	log     *book

	mu       sync.Mutex
	policies []Resource
	unknown  bool // the policies are, yet
	fail     error
	writes   []string
	watches  []*watch.FakeWatcher
}

// register starts a registrar in the bubble of a test.
func register(t *testing.T, bundle string, change ...func(*Registrar)) *office {
	t.Helper()
	o := &office{api: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "overrule-system", UID: "ns"}}), trust: newTrust(bundle), changed: make(chan struct{}, 1), log: &book{}}
	o.api.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.writes = append(o.writes, a.GetResource().Resource)
		return o.fail != nil, nil, o.fail
	})
	o.api.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		w := watch.NewFake()
		o.watches = append(o.watches, w)
		return true, w, nil
	})
	c := configuration()
	c.CABundle, c.Policies = nil, nil
	o.Registrar = &Registrar{
		Client: o.api, Configuration: c, Authority: o.trust, Changed: o.changed, Log: o.log.logger(),
		Judged: func() (Evaluated, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return Evaluated{Policies: o.policies}, !o.unknown
		},
	}
	for _, c := range change {
		c(o.Registrar)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
		for _, w := range o.watches { // a real one ends with its context
			w.Stop()
		}
	})
	synctest.Wait()
	return o
}

func (o *office) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func (o *office) written() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.writes)
}

func (o *office) validating(t *testing.T) *admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, c.Webhooks, 6)
	return &c.Webhooks[0]
}

func TestARegistrarWritesBothConfigurationsAndPublishesTheBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		assert.Equal(t, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, o.writes[:2], "the one that adds, then the one that decides")
		assert.Equal(t, "first", string(o.validating(t).ClientConfig.CABundle))
		assert.Equal(t, []string{"first"}, o.trust.told())
		assert.True(t, o.NeedLeaderElection())
	})
}

func TestWithoutABundleNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "")
		time.Sleep(10 * time.Second)
		assert.Empty(t, o.writes)
		assert.Empty(t, o.trust.told())

		o.trust.rotate("first")
		synctest.Wait()
		assert.Equal(t, []string{"first"}, o.trust.told())
	})
}

// A new leader knows no kinds at first. Were that written, the writes of all
// policies would pass unjudged.
func TestRulesAreNotTakenAwayBeforeTheKindsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		before := o.written()
		o.set(func() { o.unknown = true })
		o.trust.rotate("second")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, before, o.written())
		assert.Equal(t, []string{"first"}, o.trust.told())
		assert.NotContains(t, o.log.String(), `"error"`, "waiting is no fault")

		o.set(func() { o.unknown = false })
		o.changed <- struct{}{}
		synctest.Wait()
		assert.Equal(t, []string{"first", "second"}, o.trust.told())
	})
}

func TestANewBundleIsWrittenAndPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		o.trust.rotate("first,second")
		synctest.Wait()
		assert.Equal(t, "first,second", string(o.validating(t).ClientConfig.CABundle))
		assert.Equal(t, []string{"first", "first,second"}, o.trust.told())
	})
}

func TestANewKindIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		before := len(o.validating(t).Rules)
		o.set(func() { o.policies = []Resource{{"kuadrant.io", "v1", "authpolicies", true}} })
		o.changed <- struct{}{}
		synctest.Wait()
		rules := o.validating(t).Rules
		require.Len(t, rules, before+1)
		assert.Equal(t, []string{"authpolicies"}, rules[3].Resources)
	})
}

func TestAFailureIsTriedAgainAndNothingPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		o.set(func() { o.fail = errors.New("the API server is away") })
		before := o.written()
		o.trust.rotate("second")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"first"}, o.trust.told(), "what is not in place is not published")
		failed := o.written() - before
		assert.Greater(t, failed, 10)
		assert.Less(t, failed, 60, "it does not hurry")
		assert.Contains(t, o.log.String(), "mutating webhook configuration overrule: the API server is away")

		o.set(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first", "second"}, o.trust.told())
	})
}

func TestAnEditIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		require.Len(t, o.watches, 2)
		for _, w := range o.watches {
			before := o.written()
			w.Modify(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			synctest.Wait()
			assert.Equal(t, before+2, o.written())
			w.Delete(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			synctest.Wait()
			assert.Equal(t, before+4, o.written())
		}
	})
}

func TestADeletionWhileNobodyWatchesIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		before := o.written()
		o.watches[0].Stop() // as the API server does from time to time
		hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		require.NoError(t, hooks.Delete(t.Context(), "overrule", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		require.Greater(t, o.written(), before)
		o.validating(t)
	})
}

func TestARegistrarThatIsLeftAloneWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := register(t, "first")
		before := o.written()
		time.Sleep(50 * time.Minute)
		assert.Equal(t, before, o.written())
		time.Sleep(20 * time.Minute)
		assert.Equal(t, before+2, o.written(), "but once an hour")
	})
}
