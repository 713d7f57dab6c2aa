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

// hopeless is a source of tokens that never has one.
type hopeless struct{}

func (hopeless) Token() string            { return "" }
func (hopeless) Changed() <-chan struct{} { return nil }
func (hopeless) Published(string)         {}

// unlisted has nothing known of the policy kinds.
func unlisted(r *Registrar) { r.Judged = func() (Evaluated, bool) { return Evaluated{}, false } }

func TestALeaderThatIsNotWholeDisarms(t *testing.T) {
	for name, hinder := range map[string]func(*Registrar){
		"it knows no kinds":                unlisted,
		"it has no token of the path":      func(r *Registrar) { r.Tokens = hopeless{} },
		"it has no CA bundle":              func(r *Registrar) { r.Authority = newTrust("") },
		"it finds no namespace of its own": func(r *Registrar) { r.Configuration.Namespace = "overrule-elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &trigger{changed: make(chan struct{}, 1)}
				var wrote []admissionregistrationv1.FailurePolicyType
				o := register(t, "first", func(r *Registrar) {
					hinder(r)
					r.Arming = a
					r.Wrote = func(p admissionregistrationv1.FailurePolicyType) { wrote = append(wrote, p) }
					left(t, r, fails, fails)
				})
				time.Sleep(time.Minute)
				assert.Equal(t, []bool{true}, a.told())
				assert.Equal(t, armedOnes, policiesOf(t, o), "as long as nothing was tried, nothing changes")
				rules := o.validating(t).Rules

				a.pull(false)
				assert.Equal(t, disarmedOnes, policiesOf(t, o))
				assert.Equal(t, rules, o.validating(t).Rules, "and nothing else")
				assert.Equal(t, []admissionregistrationv1.FailurePolicyType{ignores}, wrote)
				assert.Contains(t, o.log.String(), "disarmed the webhooks, whose configurations cannot be written as a whole")

				a.pull(true)
				time.Sleep(time.Hour)
				assert.Equal(t, disarmedOnes, policiesOf(t, o), "only who is whole arms")
				assert.NotContains(t, o.log.String(), `"error"`)
			})
		})
	}
}

func TestALeaderThatIsNotWholeLeavesWhatIsAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &trigger{changed: make(chan struct{}, 1)}
		o := register(t, "first", unlisted, func(r *Registrar) {
			r.Arming = a
			ours := r.Configuration
			r.Configuration.Namespace = "other"
			left(t, r, fails, fails)
			r.Configuration = ours
		})
		a.pull(false)
		time.Sleep(time.Hour)
		assert.Equal(t, armedOnes, policiesOf(t, o))
		assert.Empty(t, a.told(), "nor is that adopted")
	})
}

func TestWhatIsHalfArmedIsDisarmedByALeaderThatIsNotWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &trigger{changed: make(chan struct{}, 1)}
		o := register(t, "first", unlisted, func(r *Registrar) {
			r.Arming = a
			left(t, r, "", fails)
		})
		assert.Equal(t, []bool{false}, a.told())
		assert.Equal(t, ignores, *o.validating(t).FailurePolicy)
	})
}

// A leader that was whole knows what it has written itself.
func TestDisarmingIsNoRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &trigger{changed: make(chan struct{}, 1)}
		o := register(t, "first", counted, func(r *Registrar) {
			r.Arming = a
			left(t, r, fails, fails)
		})
		require.Equal(t, armedOnes, policiesOf(t, o))
		o.set(func() { o.unknown = true })
		a.pull(false)
		require.Equal(t, disarmedOnes, policiesOf(t, o))
		o.set(func() { o.unknown = false })
		o.changed <- struct{}{}
		synctest.Wait()
		m, v := o.repairs()
		assert.Equal(t, []float64{0, 0}, []float64{m, v})
	})
}

func TestDisarmingThatFailsIsTold(t *testing.T) {
	for verb, want := range map[string]string{
		"get":   "look whether the webhooks are armed: mutating webhook configuration overrule: no route to host",
		"patch": "disarm the mutating webhook configuration overrule: no route to host",
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &trigger{changed: make(chan struct{}, 1)}
				o := register(t, "first", unlisted, func(r *Registrar) {
					r.Arming = a
					left(t, r, fails, fails)
				})
				o.api.PrependReactor(verb, "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("no route to host")
				})
				a.pull(false)
				require.ErrorContains(t, o.Problem(), want)
				assert.ErrorContains(t, o.Problem(), "the policy kinds are not known")
				assert.Contains(t, o.log.String(), want)
			})
		})
	}
}
