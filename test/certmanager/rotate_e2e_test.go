//go:build e2e

package certmanager

import (
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// rotations are ways to replace a serving certificate. They return the new Secret.
var rotations = []struct {
	name   string
	rotate func(*testing.T) map[string][]byte
}{
	{"the certificate is renewed", func(t *testing.T) map[string][]byte {
		t.Helper()
		return renew(t, servingName)
	}},
	{"its Secret is deleted", func(t *testing.T) map[string][]byte {
		t.Helper()
		c := get[cmapi.Certificate](t, servingName)
		require.NoError(t, cluster.Delete(t.Context(), get[corev1.Secret](t, c.Spec.SecretName)))
		return awaitIssued(t, servingName, *c.Status.Revision+1)
	}},
	{"the authority is renewed with its key, and the certificate after it", func(t *testing.T) map[string][]byte {
		t.Helper()
		before := get[corev1.Secret](t, authorityName).Data
		after := renew(t, authorityName)
		require.Equal(t, before[corev1.TLSPrivateKeyKey], after[corev1.TLSPrivateKeyKey])
		return renewAfter(t, after, servingName)
	}},
	{"the authority's Secret is deleted, and the certificate renewed", func(t *testing.T) map[string][]byte {
		t.Helper()
		before := get[corev1.Secret](t, authorityName)
		revision := *get[cmapi.Certificate](t, authorityName).Status.Revision
		require.NoError(t, cluster.Delete(t.Context(), before))
		after := awaitIssued(t, authorityName, revision+1)
		require.NotEqual(t, before.Data[corev1.TLSPrivateKeyKey], after[corev1.TLSPrivateKeyKey])
		return renewAfter(t, after, servingName)
	}},
}

// No write and no handshake is lost when a server's certificate is replaced in each way.
// Each rotation has the order of a cluster: cert-manager writes the Secret, the cainjector
// the CA bundle, and the kubelet the files, seconds to a minute later.
func TestSecretRotationUnderLoad(t *testing.T) {
	applyOverlay(t)
	s := serve(t)
	prepare(t)
	var l load
	end := l.start(t, s)
	l.awaitWrites(t, 40)
	for _, r := range rotations {
		before, err := s.handshake(t.Context())
		require.NoError(t, err)
		secret := r.rotate(t)
		awaitInjected(t, secret[cmmeta.TLSCAKey])
		l.awaitWrites(t, 40)
		s.mount(t, secret)
		l.awaitWrites(t, 40)
		assert.NotEqual(t, before.SerialNumber, parsed(t, secret).SerialNumber)
		l.requireNoFailures(t, r.name)
	}
	end()
	l.requireNoFailures(t, "at the end")
}
