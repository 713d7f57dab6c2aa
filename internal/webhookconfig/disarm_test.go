package webhookconfig

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// noToken is a source of tokens that never has one.
type noToken struct{}

func (noToken) Token() string            { return "" }
func (noToken) Changed() <-chan struct{} { return nil }
func (noToken) Published(string)         {}

// kindsUnknown has nothing known of the policy kinds.
func kindsUnknown(r *Reconciler) {
	r.PolicyResources = func() (PolicyResources, bool) { return PolicyResources{}, false }
}

func TestUnreadyLeaderDisarms(t *testing.T) {
	for name, hinder := range map[string]func(*Reconciler){
		"it knows no kinds":                kindsUnknown,
		"it has no token of the path":      func(r *Reconciler) { r.Tokens = noToken{} },
		"it has no CA bundle":              func(r *Reconciler) { r.Authority = newFakeAuthority("") },
		"it finds no namespace of its own": func(r *Reconciler) { r.Configuration.Namespace = "overrule-elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &fakeArming{changed: make(chan struct{}, 1)}
				var wrote []admissionregistrationv1.FailurePolicyType
				o := startReconciler(t, "first", func(r *Reconciler) {
					hinder(r)
					r.Arming = a
					r.OnWrite = func(p admissionregistrationv1.FailurePolicyType) { wrote = append(wrote, p) }
					writePrevious(t, r, fails, fails)
				})
				time.Sleep(time.Minute)
				assert.Equal(t, []bool{true}, a.adoptions())
				assert.Equal(t, armedPolicies, failurePolicies(t, o), "as long as nothing was tried, nothing changes")
				rules := o.validating(t).Rules

				a.setArmed(false)
				assert.Equal(t, disarmedPolicies, failurePolicies(t, o))
				assert.Equal(t, rules, o.validating(t).Rules, "and nothing else")
				assert.Equal(t, []admissionregistrationv1.FailurePolicyType{ignores}, wrote)
				assert.Contains(t, o.log.String(), "webhooks disarmed, because their configurations cannot be written")

				a.setArmed(true)
				time.Sleep(time.Hour)
				assert.Equal(t, disarmedPolicies, failurePolicies(t, o), "only who is whole arms")
				assert.NotContains(t, o.log.String(), `"error"`)
			})
		})
	}
}

func TestUnreadyLeaderKeepsOtherInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		o := startReconciler(t, "first", kindsUnknown, func(r *Reconciler) {
			r.Arming = a
			ours := r.Configuration
			r.Configuration.Namespace = "other"
			writePrevious(t, r, fails, fails)
			r.Configuration = ours
		})
		a.setArmed(false)
		time.Sleep(time.Hour)
		assert.Equal(t, armedPolicies, failurePolicies(t, o))
		assert.Empty(t, a.adoptions(), "nor is that adopted")
	})
}

func TestUnreadyLeaderDisarmsHalfArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		o := startReconciler(t, "first", kindsUnknown, func(r *Reconciler) {
			r.Arming = a
			writePrevious(t, r, "", fails)
		})
		assert.Equal(t, []bool{false}, a.adoptions())
		assert.Equal(t, ignores, *o.validating(t).FailurePolicy)
	})
}

// A leader that was whole knows what it has written itself.
func TestDisarmingIsNoRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		o := startReconciler(t, "first", withMetrics, func(r *Reconciler) {
			r.Arming = a
			writePrevious(t, r, fails, fails)
		})
		require.Equal(t, armedPolicies, failurePolicies(t, o))
		o.locked(func() { o.unknown = true })
		a.setArmed(false)
		require.Equal(t, disarmedPolicies, failurePolicies(t, o))
		o.locked(func() { o.unknown = false })
		o.changed <- struct{}{}
		synctest.Wait()
		m, v := o.repairs()
		assert.Equal(t, []float64{0, 0}, []float64{m, v})
	})
}

func TestFailedDisarmIsReported(t *testing.T) {
	for verb, want := range map[string]string{
		"get":   "armed: mutating webhook configuration overrule: no route to host",
		"patch": "disarm mutating webhook configuration overrule: no route to host",
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &fakeArming{changed: make(chan struct{}, 1)}
				o := startReconciler(t, "first", kindsUnknown, func(r *Reconciler) {
					r.Arming = a
					writePrevious(t, r, fails, fails)
				})
				o.api.PrependReactor(verb, "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("no route to host")
				})
				a.setArmed(false)
				require.ErrorContains(t, o.Problem(), want)
				assert.ErrorContains(t, o.Problem(), "policy kinds are not discovered")
				assert.Contains(t, o.log.String(), want)
			})
		})
	}
}
