//go:build integration

package webhook

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"overrule.dev/overrule/test/env"
)

// authority makes the bundle of one that is nobody's.
func authority(t *testing.T) []byte {
	t.Helper()
	bundle, _, err := cert.GenerateSelfSignedCertKey("overrule", nil, nil)
	require.NoError(t, err)
	return bundle
}

// What was carried over from before they wrote must not take the place of theirs.
func TestABundleThatComesBetweenTheLookAndTheWriteStays(t *testing.T) {
	client, err := kubernetes.NewForConfig(env.Start(t).Config)
	require.NoError(t, err)
	c := configuration()
	c.CABundle = authority(t)
	r := &Registrar{Client: client, Configuration: c, Log: logr.Discard()}
	require.NoError(t, r.apply(t.Context(), c, false))

	theirs := authority(t)
	foreign := c
	foreign.CABundle = nil
	both, err := lookAt(t.Context(), client, foreign)
	require.NoError(t, err)
	hooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	there, err := hooks.Get(t.Context(), c.Name, metav1.GetOptions{})
	require.NoError(t, err)
	for i := range there.Webhooks {
		there.Webhooks[i].ClientConfig.CABundle = theirs
	}
	_, err = hooks.Update(t.Context(), there, metav1.UpdateOptions{FieldManager: "cainjector"})
	require.NoError(t, err)
	err = r.put(t.Context(), both[1], true)
	require.True(t, apierrors.IsConflict(err), "%v", err)

	for range 2 { // the next attempt looks again
		require.NoError(t, r.apply(t.Context(), foreign, true))
		there, err = hooks.Get(t.Context(), c.Name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, string(theirs), string(there.Webhooks[0].ClientConfig.CABundle))
	}
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), c.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, string(c.CABundle), string(m.Webhooks[0].ClientConfig.CABundle), "they have not written it yet, so ours stays")
}
