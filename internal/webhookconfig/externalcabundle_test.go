package webhookconfig

import (
	"errors"
	"slices"
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

const injectFrom = "cert-manager.io/inject-ca-from"

// withExternalBundle has another client write the caBundle.
func withExternalBundle(is *atomic.Bool) func(*Reconciler) {
	return func(r *Reconciler) {
		r.ExternalCABundle = func() bool { return is.Load() }
		r.Configuration.Annotations = map[string]string{injectFrom: "overrule-system/overrule-serving"}
	}
}

// injectCABundle writes a bundle as cert-manager does.
func (o *harness) injectCABundle(t *testing.T, bundle string) {
	t.Helper()
	hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := hooks.Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	for i := range c.Webhooks {
		c.Webhooks[i].ClientConfig.CABundle = []byte(bundle)
	}
	_, err = hooks.Update(t.Context(), c, metav1.UpdateOptions{FieldManager: "cainjector"})
	require.NoError(t, err)
}

func (o *harness) newKind(resource string) {
	o.locked(func() { o.policies = append(o.policies, Resource{"kuadrant.io", "v1", resource, true}) })
	o.changed <- struct{}{}
	synctest.Wait()
}

func TestExternalBundleIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		is.Store(true)
		o := startReconciler(t, "", withExternalBundle(&is))
		assert.Nil(t, o.validating(t).ClientConfig.CABundle, "what is to be injected has to be there first")
		c, err := o.api.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "overrule-system/overrule-serving", c.Annotations[injectFrom])

		o.injectCABundle(t, "theirs")
		before := len(o.validating(t).Rules)
		o.newKind("authpolicies")
		assert.Len(t, o.validating(t).Rules, before+1)
		assert.Equal(t, "theirs", string(o.validating(t).ClientConfig.CABundle))
		assert.Empty(t, o.authority.publishedBundles(), "it is not ours to confirm")
	})
}

func TestOwnBundleStaysUntilInjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		o := startReconciler(t, "ours", withExternalBundle(&is))
		is.Store(true)
		o.newKind("authpolicies")
		o.newKind("ratelimitpolicies")
		assert.Equal(t, "ours", string(o.validating(t).ClientConfig.CABundle), "without it every call would fail")

		o.injectCABundle(t, "theirs")
		o.newKind("tlspolicies")
		assert.Equal(t, "theirs", string(o.validating(t).ClientConfig.CABundle))

		is.Store(false)
		o.newKind("dnspolicies")
		assert.Equal(t, "ours", string(o.validating(t).ClientConfig.CABundle), "taken back")
	})
}

// onlyOlder leaves a configuration with the entries that an older version wrote.
func (o *harness) onlyOlder(t *testing.T) {
	t.Helper()
	o.edit(t, "older", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		c.Webhooks = slices.DeleteFunc(c.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
			return h.Name == "services.validate.overrule.dev"
		})
	})
}

// write writes the bundle of the webhooks of some names by hand.
func (o *harness) write(t *testing.T, bundle string, names ...string) {
	t.Helper()
	o.edit(t, "kubectl", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		for i, h := range c.Webhooks {
			if slices.Contains(names, h.Name) {
				c.Webhooks[i].ClientConfig.CABundle = []byte(bundle)
			}
		}
	})
}

// Another client that writes the caBundle knows only the entries that existed before.
func TestNewWebhookGetsExternalBundle(t *testing.T) {
	const first, added = "validate.overrule.dev", "services.validate.overrule.dev"
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		is.Store(true)
		o := startReconciler(t, "", withExternalBundle(&is))
		bundle := func(name string) string {
			c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
			require.NoError(t, err)
			i := slices.IndexFunc(c.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool { return h.Name == name })
			require.GreaterOrEqual(t, i, 0, name)
			return string(c.Webhooks[i].ClientConfig.CABundle)
		}
		o.onlyOlder(t)
		assert.Empty(t, bundle(added), "no client has written one yet")

		o.injectCABundle(t, "theirs")
		o.onlyOlder(t)
		assert.Equal(t, []string{"theirs", "theirs"}, []string{bundle(first), bundle(added)})
		o.newKind("authpolicies")
		assert.Equal(t, "theirs", bundle(added), "what was carried once is applied again")

		o.write(t, "renewed", first)
		assert.Equal(t, "renewed", bundle(added), "who does not know of it renews the others alone")
		o.write(t, "its own", added)
		o.write(t, "newest", first)
		assert.Equal(t, []string{"newest", "its own"}, []string{bundle(first), bundle(added)}, "it is theirs by now")
	})
}

func TestUnknownBundleOwnerWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		o := startReconciler(t, "", withExternalBundle(&is))
		time.Sleep(time.Minute)
		assert.Zero(t, o.writeCount())
		is.Store(true)
		time.Sleep(time.Minute)
		assert.NotZero(t, o.writeCount(), "it looks again by itself")
	})
}

func TestUnreadableConfigurationIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, resource := range []string{"mutating", "validating"} {
			var is atomic.Bool
			is.Store(true)
			fail := errors.New("the API server is away")
			o := startReconciler(t, "", withExternalBundle(&is))
			o.api.PrependReactor("get", resource+"webhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
				o.mu.Lock()
				defer o.mu.Unlock()
				return fail != nil, nil, fail
			})
			before := o.writeCount()
			o.newKind("authpolicies")
			assert.Equal(t, before, o.writeCount(), "it could take away what it does not see")
			assert.Contains(t, o.log.String(), resource+" webhook configuration overrule: the API server is away")
			o.locked(func() { fail = nil })
			time.Sleep(time.Minute)
			assert.Greater(t, o.writeCount(), before)
		}
	})
}
