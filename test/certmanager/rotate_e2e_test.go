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

// rotation is a way that a serving certificate becomes another one.
type rotation struct {
	name string
	// rotate returns the Secret after.
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
		return issued(t, s.namespace, s.name, *c.Status.Revision+1)
	}}
)

// rotateUnderLoad loads a server, rotates its certificate in each way, and
// requires that no write and no handshake is lost. Each rotation has the order
// of a cluster: cert-manager writes the Secret, the cainjector what is trusted,
// and the kubelet the files, seconds to a minute later.
func rotateUnderLoad(t *testing.T, s *served, rotations ...rotation) {
	t.Helper()
	prepare(t)
	var l load
	end := l.start(t, s)
	l.more(t, 50)
	for _, r := range rotations {
		before, err := s.handshake(t.Context())
		require.NoError(t, err)
		secret := r.rotate(t, s)
		injected(t, server.Name, secret[cmmeta.TLSCAKey])
		l.more(t, 50)
		s.mount(t, secret)
		l.more(t, 50)
		assert.NotEqual(t, before.SerialNumber, parsed(t, secret).SerialNumber)
		l.unharmed(t, r.name)
	}
	end()
	l.unharmed(t, "at the end")
}

func TestFilesThatCertManagerIssuesAreRotatedUnderLoad(t *testing.T) {
	s := serve(t, "files", chain(t, servingHost), "serving")
	rotateUnderLoad(t, s, renewed, deleted)
}
