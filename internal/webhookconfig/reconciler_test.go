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

	"overrule.dev/overrule/test/logbuffer"
)

// fakeAuthority is an Authority that a test controls.
type fakeAuthority struct {
	mu        sync.Mutex
	bundle    string
	changed   chan struct{}
	published []string
}

func newFakeAuthority(bundle string) *fakeAuthority {
	return &fakeAuthority{bundle: bundle, changed: make(chan struct{})}
}

func (a *fakeAuthority) CABundle() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []byte(a.bundle)
}

func (a *fakeAuthority) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *fakeAuthority) Published(bundle []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.published = append(a.published, string(bundle))
}

func (a *fakeAuthority) rotate(bundle string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bundle = bundle
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *fakeAuthority) publishedBundles() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Compact(slices.Clone(a.published))
}

// harness is a reconciler with a fake API server.
type harness struct {
	*Reconciler
	api       *fake.Clientset
	authority *fakeAuthority
	changed   chan struct{}
	log       *logbuffer.Buffer

	mu       sync.Mutex
	policies []Resource
	unknown  bool // the policies are, yet
	fail     error
	writes   []string
	watches  []*watch.FakeWatcher
	stop     func() // ends Start
}

// startReconciler starts a reconciler in the synctest bubble of a test.
func startReconciler(t *testing.T, bundle string, change ...func(*Reconciler)) *harness {
	t.Helper()
	o := &harness{api: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "overrule-system", UID: "ns"}}), authority: newFakeAuthority(bundle), changed: make(chan struct{}, 1), log: &logbuffer.Buffer{}}
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
	o.Reconciler = &Reconciler{
		Client: o.api, Configuration: c, Authority: o.authority, Changed: o.changed, Log: o.log.Logger(),
		PolicyResources: func() (PolicyResources, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return PolicyResources{Policies: o.policies}, !o.unknown
		},
	}
	for _, c := range change {
		c(o.Reconciler)
	}
	o.start(t)
	t.Cleanup(func() { o.stop() })
	return o
}

// start begins a term, which stop ends.
func (o *harness) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	synctest.Wait()
}

func (o *harness) locked(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func (o *harness) writeCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.writes)
}

func (o *harness) validating(t *testing.T) *admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, c.Webhooks, 6)
	return &c.Webhooks[0]
}

func TestReconcilerWritesAndPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		assert.Equal(t, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, o.writes[:2], "the one that adds, then the one that decides")
		assert.Equal(t, "first", string(o.validating(t).ClientConfig.CABundle))
		assert.Equal(t, []string{"first"}, o.authority.publishedBundles())
		assert.True(t, o.NeedLeaderElection())
	})
}

func TestNoBundleWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "")
		time.Sleep(10 * time.Second)
		assert.Empty(t, o.writes)
		assert.Empty(t, o.authority.publishedBundles())

		o.authority.rotate("first")
		synctest.Wait()
		assert.Equal(t, []string{"first"}, o.authority.publishedBundles())
	})
}

// A new leader knows no kinds at first. Were that written, the writes of all
// policies would pass without evaluation.
func TestUnknownKindsKeepRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		before := o.writeCount()
		o.locked(func() { o.unknown = true })
		o.authority.rotate("second")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, before, o.writeCount())
		assert.Equal(t, []string{"first"}, o.authority.publishedBundles())
		assert.NotContains(t, o.log.String(), `"error"`, "waiting is no fault")

		o.locked(func() { o.unknown = false })
		o.changed <- struct{}{}
		synctest.Wait()
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles())
	})
}

func TestNewBundleIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		o.authority.rotate("first,second")
		synctest.Wait()
		assert.Equal(t, "first,second", string(o.validating(t).ClientConfig.CABundle))
		assert.Equal(t, []string{"first", "first,second"}, o.authority.publishedBundles())
	})
}

func TestNewKindAddsRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		before := len(o.validating(t).Rules)
		o.locked(func() { o.policies = []Resource{{"kuadrant.io", "v1", "authpolicies", true}} })
		o.changed <- struct{}{}
		synctest.Wait()
		rules := o.validating(t).Rules
		require.Len(t, rules, before+1)
		assert.Equal(t, []string{"authpolicies"}, rules[3].Resources)
	})
}

func TestFailedWriteIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		o.locked(func() { o.fail = errors.New("the API server is away") })
		before := o.writeCount()
		o.authority.rotate("second")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"first"}, o.authority.publishedBundles(), "what is not in place is not published")
		failed := o.writeCount() - before
		assert.Greater(t, failed, 10)
		assert.Less(t, failed, 60, "it does not hurry")
		assert.Contains(t, o.log.String(), "mutating webhook configuration overrule: the API server is away")

		o.locked(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles())
	})
}

func TestEditIsReverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		require.Len(t, o.watches, 2)
		for _, w := range o.watches {
			before := o.writeCount()
			w.Modify(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			synctest.Wait()
			assert.Equal(t, before+2, o.writeCount())
			w.Delete(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			synctest.Wait()
			assert.Equal(t, before+4, o.writeCount())
		}
	})
}

func TestDeletionBetweenWatchesIsReverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		before := o.writeCount()
		o.watches[0].Stop() // as the API server does from time to time
		hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		require.NoError(t, hooks.Delete(t.Context(), "overrule", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		require.Greater(t, o.writeCount(), before)
		o.validating(t)
	})
}

func TestNoChangeWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		before := o.writeCount()
		time.Sleep(50 * time.Minute)
		assert.Equal(t, before, o.writeCount())
		time.Sleep(20 * time.Minute)
		assert.Equal(t, before+2, o.writeCount(), "but once an hour")
	})
}
