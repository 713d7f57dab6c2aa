//go:build e2e

package certmanager

import (
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"overrule.dev/overrule/test/server"
)

// rotation is a way to replace a serving certificate.
type rotation struct {
	name string
	// rotate returns the new Secret.
	rotate func(*testing.T, *served) map[string][]byte
}

var (
	renewed = rotation{"the certificate is renewed", func(t *testing.T, s *served) map[string][]byte {
		t.Helper()
		return renew(t, s.namespace, s.name)
	}}
	deleted = rotation{"its Secret is deleted", func(t *testing.T, s *served) map[string][]byte {
		t.Helper()
		c := get[cmapi.Certificate](t, s.namespace, s.name)
		require.NoError(t, cluster.Delete(t.Context(), get[corev1.Secret](t, s.namespace, c.Spec.SecretName)))
		return awaitIssued(t, s.namespace, s.name, *c.Status.Revision+1)
	}}
	authorityRenewed = rotation{"the authority is renewed with its key, and the certificate after it", func(t *testing.T, s *served) map[string][]byte {
		t.Helper()
		before := get[corev1.Secret](t, s.namespace, authorityName).Data
		after := renew(t, s.namespace, authorityName)
		require.Equal(t, before[corev1.TLSPrivateKeyKey], after[corev1.TLSPrivateKeyKey])
		return renewAfter(t, after, s.namespace, s.name)
	}}
	authorityReplaced = rotation{"the authority's Secret is deleted, and the certificate renewed", func(t *testing.T, s *served) map[string][]byte {
		t.Helper()
		before := get[corev1.Secret](t, s.namespace, authorityName)
		revision := *get[cmapi.Certificate](t, s.namespace, authorityName).Status.Revision
		require.NoError(t, cluster.Delete(t.Context(), before))
		after := awaitIssued(t, s.namespace, authorityName, revision+1)
		require.NotEqual(t, before.Data[corev1.TLSPrivateKeyKey], after[corev1.TLSPrivateKeyKey])
		return renewAfter(t, after, s.namespace, s.name)
	}}
)

// rotateUnderLoad rotates a server's certificate in each way under load, and
// requires that no write and no handshake is lost. Each rotation has the order of
// a cluster: cert-manager writes the Secret, the cainjector the CA bundle, and
// the kubelet the files, seconds to a minute later.
func rotateUnderLoad(t *testing.T, s *served, rotations ...rotation) {
	t.Helper()
	prepare(t)
	var l load
	end := l.start(t, s)
	l.awaitWrites(t, 40)
	for _, r := range rotations {
		before, err := s.handshake(t.Context())
		require.NoError(t, err)
		secret := r.rotate(t, s)
		awaitInjected(t, server.Name, secret[cmmeta.TLSCAKey])
		l.awaitWrites(t, 40)
		s.mount(t, secret)
		l.awaitWrites(t, 40)
		assert.NotEqual(t, before.SerialNumber, parsed(t, secret).SerialNumber)
		l.requireNoFailures(t, r.name)
	}
	end()
	l.requireNoFailures(t, "at the end")
}

func TestFileRotationUnderLoad(t *testing.T) {
	s := serve(t, "files", chain(t, servingHost), "serving")
	rotateUnderLoad(t, s, renewed, deleted)
}

func TestSecretRotationUnderLoad(t *testing.T) {
	applyOverlay(t)
	s := serve(t, "cert-manager", server.Namespace, servingName)
	rotateUnderLoad(t, s, renewed, deleted, authorityRenewed, authorityReplaced)
}
