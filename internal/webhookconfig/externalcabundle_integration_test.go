//go:build integration

package webhookconfig

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"overrule.dev/overrule/test/env"
)

// TestMain lets the tests share control planes.
func TestMain(m *testing.M) { env.Main(m) }

// selfSignedBundle returns the bundle of a CA that signs nothing else.
func selfSignedBundle(t *testing.T) []byte {
	t.Helper()
	bundle, _, err := cert.GenerateSelfSignedCertKey("overrule", nil, nil)
	require.NoError(t, err)
	return bundle
}

// apply writes both configurations once.
func apply(t *testing.T, r *Reconciler, c Configuration, external bool) error {
	t.Helper()
	both, err := readBoth(t.Context(), r.Client, c)
	require.NoError(t, err)
	return r.write(t.Context(), both, written{c, true}, external)
}

// What was carried over from before they wrote must not take the place of theirs.
func TestConcurrentExternalBundleStays(t *testing.T) {
	client, err := kubernetes.NewForConfig(env.Start(t).Config)
	require.NoError(t, err)
	c := configuration()
	c.CABundle = selfSignedBundle(t)
	r := &Reconciler{Client: client, Configuration: c, Log: logr.Discard()}
	require.NoError(t, apply(t, r, c, false))

	theirs := selfSignedBundle(t)
	foreign := c
	foreign.CABundle = nil
	both, err := readBoth(t.Context(), client, foreign)
	require.NoError(t, err)
	hooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	there, err := hooks.Get(t.Context(), c.Name, metav1.GetOptions{})
	require.NoError(t, err)
	for i := range there.Webhooks {
		there.Webhooks[i].ClientConfig.CABundle = theirs
	}
	_, err = hooks.Update(t.Context(), there, metav1.UpdateOptions{FieldManager: "cainjector"})
	require.NoError(t, err)
	err = r.write(t.Context(), both, written{foreign, true}, true)
	require.True(t, apierrors.IsConflict(err), "%v", err)

	for range 2 { // the next attempt looks again
		require.NoError(t, apply(t, r, foreign, true))
		there, err = hooks.Get(t.Context(), c.Name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, string(theirs), string(there.Webhooks[0].ClientConfig.CABundle))
	}
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), c.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, string(c.CABundle), string(m.Webhooks[0].ClientConfig.CABundle), "they have not written it yet, so ours stays")
}

// theirsOfServices has another own the caBundle of the entry of Services, as
// kubectl apply --server-side makes it own what a manifest says.
const theirsOfServices = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"overrule"},
	"webhooks":[{"name":"services.validate.overrule.dev","clientConfig":{"caBundle":%q},"sideEffects":"NoneOnDryRun","admissionReviewVersions":["v1"]}]}`

// An entry that was left out would leave a caBundle of another's behind, alone,
// which the API server refuses: nothing could be written any more.
func TestServicesWebhookStaysWithoutRules(t *testing.T) {
	plane := env.Start(t)
	client, err := kubernetes.NewForConfig(plane.Config)
	require.NoError(t, err)
	hooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c := configuration()
	c.CABundle = nil
	entry := func(services bool) (int, admissionregistrationv1.ValidatingWebhook) {
		t.Helper()
		c.Services = services
		r := &Reconciler{Client: client, Configuration: c, Log: logr.Discard()}
		require.NoError(t, apply(t, r, c, true))
		there, err := hooks.Get(t.Context(), c.Name, metav1.GetOptions{})
		require.NoError(t, err)
		i := slices.IndexFunc(there.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
			return h.Name == "services.validate.overrule.dev"
		})
		require.GreaterOrEqual(t, i, 0)
		return i, there.Webhooks[i]
	}
	patch := func(as types.PatchType, by, data string) {
		t.Helper()
		o := metav1.PatchOptions{FieldManager: by}
		if as == types.ApplyPatchType {
			o.Force = new(true)
		}
		_, err := hooks.Patch(t.Context(), c.Name, as, []byte(data), o)
		require.NoError(t, err)
	}
	entry(true)
	theirs := selfSignedBundle(t)
	patch(types.ApplyPatchType, "kubectl", fmt.Sprintf(theirsOfServices, base64.StdEncoding.EncodeToString(theirs)))
	for range 2 {
		at, h := entry(true)
		assert.Len(t, h.Rules, 1)
		assert.Equal(t, string(theirs), string(h.ClientConfig.CABundle))

		// No server responds, so with failurePolicy Fail every matching write is rejected.
		fail := fmt.Sprintf(`[{"op":"replace","path":"/webhooks/%d/failurePolicy","value":"Fail"}]`, at)
		patch(types.JSONPatchType, "eve", fail)
		refused := func() bool {
			return plane.Apply("{apiVersion: v1, kind: Service, metadata: {name: tried, namespace: default}, spec: {ports: [{port: 80}]}}", "--dry-run=server").Code != 0
		}
		env.Soon(t, refused, "it is not called for Services")

		_, h = entry(false)
		assert.Empty(t, h.Rules)
		assert.Equal(t, string(theirs), string(h.ClientConfig.CABundle))
		patch(types.JSONPatchType, "eve", fail)
		env.Soon(t, func() bool { return !refused() }, "it is called for Services")
	}
}
