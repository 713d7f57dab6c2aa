package webhookconfig

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestSecondTermAdoptsAndRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeArming{changed: make(chan struct{}, 1)}
		o := startReconciler(t, "first", withMetrics, func(r *Reconciler) { r.Arming = a })
		assert.Equal(t, disarmedPolicies, failurePolicies(t, o))
		o.stop()

		o.authority.rotate("second")
		other := o.Configuration // of the leader in between
		other.CABundle, other.Policies = []byte("second"), []Resource{{"kuadrant.io", "v1", "dnspolicies", true}}
		writePrevious(t, &Reconciler{Client: o.api, Configuration: other}, fails, fails)
		before := o.writeCount()
		synctest.Wait()
		assert.Equal(t, before, o.writeCount(), "it does not lead")

		o.start(t)
		assert.Equal(t, []bool{false, true}, a.adoptions())
		assert.Equal(t, armedPolicies, failurePolicies(t, o))
		m, v := o.repairs()
		assert.Equal(t, []float64{0, 0}, []float64{m, v}, "what the other leader wrote is no edit")
		o.edit(t, "eve", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].FailurePolicy = new(ignores)
		})
		assert.Equal(t, armedPolicies, failurePolicies(t, o))
		_, v = o.repairs()
		assert.InDelta(t, 1, v, 0)
	})
}

func TestEndOfTermResetsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := fakeTokens{newFakeAuthority(testToken)}
		o := startReconciler(t, "first", func(r *Reconciler) { r.Tokens = tokens })
		o.locked(func() { o.fail = errors.New("the API server is away") })
		o.authority.rotate("second")
		time.Sleep(time.Minute)
		require.Error(t, o.Problem())
		o.stop()
		require.NoError(t, o.Problem(), "only the leader knows")
		assert.Equal(t, []string{"first", ""}, o.authority.publishedBundles())
		assert.Equal(t, []string{testToken, ""}, tokens.publishedBundles())

		o.locked(func() { o.fail = nil })
		o.start(t)
		require.NoError(t, o.Problem())
		assert.Equal(t, []string{"first", "", "second"}, o.authority.publishedBundles())
	})
}
