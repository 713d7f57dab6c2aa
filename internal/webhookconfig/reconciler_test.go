package webhookconfig

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	"overrule.dev/overrule/test/logbuffer"
	"overrule.dev/overrule/test/process"
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
	c := configuration()
	c.CABundle, c.Policies = nil, nil
	o.Reconciler = &Reconciler{
		Client: o.api, Configuration: c, Authority: o.authority, Tokens: fakeTokens{newFakeAuthority(testToken)}, Changed: o.changed, Log: o.log.Logger(),
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
	return o
}

// start begins a term, which stop ends.
func (o *harness) start(t *testing.T) {
	t.Helper()
	o.stop = process.Run(t, o.Start)
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
	require.GreaterOrEqual(t, len(c.Webhooks), 6)
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
		assert.InDelta(t, 10*time.Minute/resyncInterval, failed, 1)
		assert.Contains(t, o.log.String(), "mutating webhook configuration overrule: the API server is away")

		o.locked(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles())
	})
}

func TestEditsAreReverted(t *testing.T) {
	for name, edit := range map[string]func(*admissionregistrationv1.ValidatingWebhookConfiguration){
		"failurePolicy": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
		},
		"timeoutSeconds": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].TimeoutSeconds = new(int32(1))
		},
		"rules": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].Rules = c.Webhooks[0].Rules[1:]
		},
		"no rules": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks[0].Rules = nil },
		"path": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.Service.Path = new("/elsewhere")
		},
		"caBundle": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.CABundle = []byte("theirs")
		},
		"objectSelector": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ObjectSelector = never()
		},
		"added condition": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].MatchConditions = append(c.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"edited condition": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].MatchConditions[0].Expression = "false"
		},
		"url": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.Service, c.Webhooks[0].ClientConfig.URL = nil, new("https://localhost:1/")
		},
		"removed webhook": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = c.Webhooks[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := startReconciler(t, "first", func(r *Reconciler) {
					r.Repairs, r.Configuration.FailurePolicy = newRepairs(), admissionregistrationv1.Fail
				})
				before := o.webhooks(t)
				o.edit(t, "eve", edit)
				assert.ElementsMatch(t, before, o.webhooks(t))
				assert.Equal(t, []float64{0, 1}, o.repairs())
				assert.Contains(t, o.log.String(), `"what"="validate.overrule.dev"`)
			})
		})
	}
}

// never is a selector of no object.
func never() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"no": "object"}}
}

func TestDeletedConfigurationIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := events.NewFakeRecorder(2)
		o := startReconciler(t, "first", func(r *Reconciler) { r.Repairs, r.Events = newRepairs(), recorded })
		o.remove(t, typeMutating)
		o.remove(t, typeValidating)
		o.validating(t)
		assert.Equal(t, []float64{1, 1}, o.repairs())
		assert.Contains(t, o.log.String(), `"what"="deleted"`)
		require.NotEmpty(t, recorded.Events)
		assert.Contains(t, <-recorded.Events, "reverted by overrule: deleted")
	})
}

// Clouds exempt their own namespaces from all webhooks, and add labels, annotations and
// webhooks. They would do so again each time.
func TestFieldsOfOthersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first", func(r *Reconciler) { r.Repairs = newRepairs() })
		o.edit(t, "cloud", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Labels["theirs"], c.Annotations["theirs"] = "too", "too"
			s := c.Webhooks[0].NamespaceSelector
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "theirs.example.com"})
		})
		theirs := o.webhooks(t)
		o.newKind("authpolicies")
		o.authority.rotate("second")
		time.Sleep(3 * resyncInterval)
		c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, []string{"too", "too"}, []string{c.Labels["theirs"], c.Annotations["theirs"]})
		assert.Equal(t, theirs[0].NamespaceSelector, c.Webhooks[0].NamespaceSelector)
		assert.Len(t, c.Webhooks[0].NamespaceSelector.MatchExpressions, 2)
		assert.Equal(t, "theirs.example.com", c.Webhooks[6].Name)
		assert.Equal(t, "second", string(c.Webhooks[0].ClientConfig.CABundle), "what is needed is written all the same")
		assert.Equal(t, []float64{0, 0}, o.repairs())
		assert.NoError(t, o.Problem())
	})
}

func TestConflictIsNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		o.locked(func() {
			o.fail = apierrors.NewConflict(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "overrule", errors.New("changed meanwhile"))
		})
		o.authority.rotate("second")
		time.Sleep(time.Second)
		o.locked(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles())
		assert.NotContains(t, o.log.String(), `"error"`)
	})
}

func TestProblemUntilWritten(t *testing.T) {
	const advice = ": apply deploy/base/rbac-webhooks.yaml (with Helm, upgrade the release) to restore this right; if it was removed on purpose, see docs/install.md, Break-glass"
	for fail, want := range map[error]string{
		errors.New("the API server is away"): "the API server is away",
		apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "overrule", errors.New("no right")): `mutatingwebhookconfigurations "overrule" is forbidden: no right` + advice,
	} {
		synctest.Test(t, func(t *testing.T) {
			o := startReconciler(t, "first")
			require.NoError(t, o.Problem())
			o.locked(func() { o.fail = fail })
			o.authority.rotate("second")
			time.Sleep(time.Minute)
			require.EqualError(t, o.Problem(), "mutating webhook configuration overrule: "+want)
			o.locked(func() { o.fail = nil })
			time.Sleep(time.Minute)
			assert.NoError(t, o.Problem())
		})
	}
}

// If the namespace is deleted, no server answers, and the configurations go with it.
func TestTerminatingNamespaceWritesNothing(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *harness){
		"it is gone": func(t *testing.T, o *harness) {
			require.NoError(t, o.api.CoreV1().Namespaces().Delete(t.Context(), "overrule-system", metav1.DeleteOptions{}))
		},
		"it is being deleted": func(t *testing.T, o *harness) {
			now := metav1.Now()
			_, err := o.api.CoreV1().Namespaces().Update(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "overrule-system", DeletionTimestamp: &now}}, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := startReconciler(t, "first")
				end(t, o)
				before := o.writeCount()
				o.authority.rotate("second")
				time.Sleep(time.Minute)
				assert.Equal(t, before, o.writeCount())
				assert.NotContains(t, o.log.String(), `"error"`)
			})
		})
	}
}

// Two installations would overwrite each other for ever.
func TestSecondInstallationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "hooks"}}
		_, err := o.api.CoreV1().Services("other").Create(t.Context(), other, metav1.CreateOptions{})
		require.NoError(t, err)
		mutating := o.api.AdmissionregistrationV1().MutatingWebhookConfigurations()
		m, err := mutating.Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		m.Annotations[annotationInstallation] = "other/hooks"
		_, err = mutating.Update(t.Context(), m, metav1.UpdateOptions{})
		require.NoError(t, err)
		before := o.writeCount()
		o.authority.rotate("second")
		time.Sleep(time.Minute)
		assert.Equal(t, before, o.writeCount())
		require.ErrorContains(t, o.Problem(), "webhook configurations overrule belong to installation other/hooks, whose Service exists; this installation (overrule-system/hooks) does not write them")

		fail := errors.New("no answer")
		o.api.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return fail != nil, nil, fail
		})
		require.NoError(t, o.api.CoreV1().Services("other").Delete(t.Context(), "hooks", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		assert.Equal(t, before, o.writeCount(), "the Service could exist")
		require.ErrorContains(t, o.Problem(), "read the Service of installation other/hooks, which owns the webhook configurations: no answer")
		o.locked(func() { fail = nil })
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles(), "it takes over")
		assert.NoError(t, o.Problem())
	})
}

// The next term begins without what the last one knew: another leader may have written.
func TestEndOfTermResetsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := fakeTokens{newFakeAuthority(testToken)}
		o := startReconciler(t, "first", func(r *Reconciler) { r.Tokens, r.Repairs = tokens, newRepairs() })
		o.locked(func() { o.fail = errors.New("the API server is away") })
		o.authority.rotate("second")
		time.Sleep(time.Minute)
		require.Error(t, o.Problem())
		o.stop()
		require.NoError(t, o.Problem(), "only the leader knows")
		assert.Equal(t, []string{"first", ""}, o.authority.publishedBundles())
		assert.Equal(t, []string{testToken, ""}, tokens.publishedBundles())

		o.locked(func() { o.fail = nil })
		before := o.writeCount()
		o.edit(t, "another leader", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks[0].Rules = nil })
		assert.Equal(t, before, o.writeCount(), "it does not lead")
		o.start(t)
		require.NoError(t, o.Problem())
		assert.Equal(t, []string{"first", "", "second"}, o.authority.publishedBundles())
		assert.NotEmpty(t, o.validating(t).Rules)
		assert.Equal(t, []float64{0, 0}, o.repairs(), "what the other leader wrote is no edit")
	})
}

func newRepairs() *prometheus.CounterVec { return NewRepairs(prometheus.NewRegistry()) }

// edit updates the validating configuration as another client, and waits for the resync.
func (o *harness) edit(t *testing.T, by string, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
	t.Helper()
	hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := hooks.Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	change(c)
	_, err = hooks.Update(t.Context(), c, metav1.UpdateOptions{FieldManager: by})
	require.NoError(t, err)
	time.Sleep(resyncInterval)
	synctest.Wait()
}

// remove deletes a configuration as another client, and waits for the resync.
func (o *harness) remove(t *testing.T, configType string) {
	t.Helper()
	remove := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete
	if configType == typeMutating {
		remove = o.api.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete
	}
	require.NoError(t, remove(t.Context(), "overrule", metav1.DeleteOptions{}))
	time.Sleep(resyncInterval)
	synctest.Wait()
}

// webhooks returns those of the validating configuration.
func (o *harness) webhooks(t *testing.T) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	return c.Webhooks
}

// repairs returns how many edits of the mutating and of the validating configuration were
// reverted.
func (o *harness) repairs() []float64 {
	of := func(configType string) float64 {
		return testutil.ToFloat64(o.Repairs.WithLabelValues(configType))
	}
	return []float64{of(typeMutating), of(typeValidating)}
}
