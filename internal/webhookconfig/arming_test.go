package webhookconfig

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// fakeArming is an Arming that a test controls.
type fakeArming struct {
	mu      sync.Mutex
	armed   bool
	adopted []bool
	changed chan struct{}
}

func (a *fakeArming) Armed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.armed
}

func (a *fakeArming) Changed() <-chan struct{} { return a.changed }

func (a *fakeArming) Adopt(armed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adopted, a.armed = append(a.adopted, armed), armed
}

func (a *fakeArming) adoptions() []bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.adopted)
}

func (a *fakeArming) setArmed(armed bool) {
	a.mu.Lock()
	a.armed = armed
	a.mu.Unlock()
	a.changed <- struct{}{}
	synctest.Wait()
}

// failurePolicies are the failurePolicies of all webhooks.
func failurePolicies(t *testing.T, o *harness) (out []admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	hooks := o.api.AdmissionregistrationV1()
	m, err := hooks.MutatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	v, err := hooks.ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	for _, w := range m.Webhooks {
		if w.Name == reviewWebhook {
			assert.Equal(t, admissionregistrationv1.Fail, *w.FailurePolicy, "reviews fail without an answer, armed or not")
			continue
		}
		out = append(out, *w.FailurePolicy)
	}
	for _, w := range v.Webhooks {
		out = append(out, *w.FailurePolicy)
	}
	return out
}

const (
	fails   = admissionregistrationv1.Fail
	ignores = admissionregistrationv1.Ignore
)

var (
	armedPolicies    = []admissionregistrationv1.FailurePolicyType{fails, fails, ignores, ignores, ignores, ignores, fails}
	disarmedPolicies = []admissionregistrationv1.FailurePolicyType{ignores, ignores, ignores, ignores, ignores, ignores, ignores}
)

func TestArmAndDisarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		var wrote atomic.Value // the last failurePolicy that was reported
		o := startReconciler(t, "first", func(r *Reconciler) {
			r.Arming = a
			r.OnWrite = func(p admissionregistrationv1.FailurePolicyType) { wrote.Store(p) }
		})
		assert.Equal(t, disarmedPolicies, failurePolicies(t, o), "whatever --failure-policy is: nothing was tried yet")
		assert.Equal(t, []bool{false}, a.adoptions())
		assert.Equal(t, ignores, wrote.Load())
		a.setArmed(true)
		assert.Equal(t, armedPolicies, failurePolicies(t, o))
		assert.Equal(t, fails, wrote.Load())
		a.setArmed(false)
		assert.Equal(t, disarmedPolicies, failurePolicies(t, o))
		assert.Equal(t, ignores, wrote.Load())
		assert.Equal(t, []bool{false}, a.adoptions(), "once is enough")
	})
}

// writePrevious writes what a leader before has left.
func writePrevious(t *testing.T, r *Reconciler, m, v admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	hooks := r.Client.AdmissionregistrationV1()
	mutating, validating := r.Configuration, r.Configuration
	mutating.FailurePolicy, validating.FailurePolicy = m, v
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if m != "" {
		_, err := hooks.MutatingWebhookConfigurations().Apply(t.Context(), mutating.Mutating(), options)
		require.NoError(t, err)
	}
	_, err := hooks.ValidatingWebhookConfigurations().Apply(t.Context(), validating.Validating(), options)
	require.NoError(t, err)
}

func TestNewLeaderAdoptsArming(t *testing.T) {
	for name, c := range map[string]struct {
		mutating, validating admissionregistrationv1.FailurePolicyType
		want                 bool
	}{
		"armed":                        {fails, fails, true},
		"disarmed":                     {ignores, ignores, false},
		"half of it":                   {fails, ignores, false},
		"the other half":               {ignores, fails, false},
		"one of them is there no more": {"", fails, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &fakeArming{changed: make(chan struct{}, 1)}
				o := startReconciler(t, "first", func(r *Reconciler) {
					r.Arming = a
					writePrevious(t, r, c.mutating, c.validating)
				})
				assert.Equal(t, []bool{c.want}, a.adoptions())
				assert.Equal(t, map[bool][]admissionregistrationv1.FailurePolicyType{true: armedPolicies, false: disarmedPolicies}[c.want], failurePolicies(t, o))
			})
		})
	}
}

func TestUnreadableConfigurationIsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		var repaired atomic.Bool
		o := startReconciler(t, "first", func(r *Reconciler) {
			r.Arming = a
			writePrevious(t, r, fails, fails)
			r.Client.(interface {
				PrependReactor(verb, resource string, f clienttesting.ReactionFunc)
			}).PrependReactor("get", "validatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
				return !repaired.Load(), nil, errors.New("no route to host")
			})
		})
		before := o.writeCount()
		assert.Empty(t, a.adoptions())
		assert.Contains(t, o.log.String(), "armed: validating webhook configuration overrule: no route to host")
		assert.Equal(t, 2, before, "those of the leader before")
		repaired.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []bool{true}, a.adoptions())
		assert.Equal(t, armedPolicies, failurePolicies(t, o))
	})
}

func TestArmingWithExternalCABundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		var wrote atomic.Value // the last failurePolicy that was reported
		o := startReconciler(t, "", func(r *Reconciler) {
			r.Arming, r.ExternalCABundle = a, func() bool { return true }
			r.OnWrite = func(p admissionregistrationv1.FailurePolicyType) { wrote.Store(p) }
		})
		assert.Equal(t, disarmedPolicies, failurePolicies(t, o))
		a.setArmed(true)
		assert.Equal(t, armedPolicies, failurePolicies(t, o))
		assert.Equal(t, fails, wrote.Load())
	})
}

// What others do again each time is left for a while: failurePolicy is then what
// stands there, and not what would have been written.
func TestDelayedRevertReportsDisarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		var wrote atomic.Value // the last failurePolicy that was reported
		o := startReconciler(t, "first", func(r *Reconciler) {
			r.Arming = a
			r.OnWrite = func(p admissionregistrationv1.FailurePolicyType) { wrote.Store(p) }
		})
		a.setArmed(true)
		hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		for range 20 { // until it is not undone at once
			c, err := hooks.Get(t.Context(), "overrule", metav1.GetOptions{})
			require.NoError(t, err)
			if c.Webhooks[0].FailurePolicy = new(ignores); *o.validating(t).FailurePolicy != ignores {
				_, err = hooks.Update(t.Context(), c, metav1.UpdateOptions{FieldManager: "eve"})
				require.NoError(t, err)
			}
			o.watches[0].Modify(c)
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, ignores, *o.validating(t).FailurePolicy)
		assert.Equal(t, ignores, wrote.Load())

		time.Sleep(10 * time.Minute)
		require.Equal(t, fails, *o.validating(t).FailurePolicy)
		assert.Equal(t, fails, wrote.Load())
	})
}
