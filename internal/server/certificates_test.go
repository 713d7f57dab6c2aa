package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/test/process"
)

// newTestProvider returns the certProvider of some flags.
func newTestProvider(t *testing.T, args ...string) *certProvider {
	t.Helper()
	return newCertProvider(fake.NewClientset(), parseOptions(t, args...), logr.Discard())
}

func (i *certProvider) start(t *testing.T) {
	t.Helper()
	for _, r := range i.runnables {
		process.Run(t, r.Start)
	}
}

// writeCertificates returns a directory with a self-signed serving certificate.
func writeCertificates(t *testing.T, withCA bool) string {
	t.Helper()
	t.Setenv("POD_NAMESPACE", "")
	dir := t.TempDir()
	served, key, err := cert.GenerateSelfSignedCertKey("overrule.overrule-system.svc", []net.IP{}, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, certs.CertFile), served, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, certs.KeyFile), key, 0o600))
	if withCA {
		require.NoError(t, os.WriteFile(filepath.Join(dir, certs.CAFile), served, 0o600))
	}
	return dir
}

func TestExternalBundle(t *testing.T) {
	for name, c := range map[string]struct {
		source   string
		withCA   bool
		external bool
		bundle   bool
	}{
		"files with ca.crt: the registrar writes it": {source: certificatesFiles, withCA: true, bundle: true},
		"files without ca.crt: external":             {source: certificatesFiles, external: true},
		"cert-manager: external, by its cainjector":  {source: certificatesCertManager, withCA: true, external: true, bundle: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := newTestProvider(t, "--certificates="+c.source, "--cert-dir="+writeCertificates(t, c.withCA))
			assert.False(t, i.externalBundle(), "unknown before the files are read")
			i.start(t)
			require.Eventually(t, func() bool { return i.source.Healthy(nil) == nil }, time.Minute, time.Millisecond)
			assert.Equal(t, c.external, i.externalBundle())
			assert.Equal(t, c.bundle, i.source.CABundle() != nil)
			assert.Contains(t, i.warnings, "certificate")
		})
	}
}

func TestCertManagerInjectAnnotation(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "own")
	i := newTestProvider(t, "--certificates=cert-manager", "--certificate-name=mine")
	assert.Equal(t, map[string]string{"cert-manager.io/inject-ca-from": "own/mine"}, i.annotations)
	assert.Empty(t, newTestProvider(t, "--certificates=files").annotations)
}

func TestOwnAuthorityWritesTheBundle(t *testing.T) {
	i := newTestProvider(t)
	assert.Nil(t, i.externalBundle)
	assert.Same(t, i.authority, i.source)
	assert.Len(t, i.runnables, 1)

	i = newTestProvider(t, "--certificates=files")
	assert.NotNil(t, i.authority, "it signs for calls between replicas")
	assert.Len(t, i.runnables, 2)
	i = newTestProvider(t, "--certificates=files", "--coordination=none")
	assert.Nil(t, i.authority)
	assert.Len(t, i.runnables, 1)
}

func TestClientAuthIsOptional(t *testing.T) {
	server, probes := &httpsServer{certificates: newTestSource(t)}, &probeServer{checks: map[string]healthz.Checker{}}
	addClientAuth(server, probes, parseOptions(t), logr.Discard())
	assert.Nil(t, server.clientAuth)
	assert.NotContains(t, probes.checks, "callers")
	assert.Equal(t, tls.NoClientCert, server.tls().ClientAuth)

	file := filepath.Join(t.TempDir(), "ca.crt")
	addClientAuth(server, probes, parseOptions(t, "--client-ca-file="+file), logr.Discard())
	require.ErrorIs(t, probes.checks["callers"](nil), certs.ErrNoAuthorities, "not ready before the CAs are loaded")
	require.NoError(t, probes.warnings["callers"]())
	assert.Len(t, server.runnables, 1)
	assert.Equal(t, tls.RequireAnyClientCert, server.tls().ClientAuth)
}

func TestRequestOfRemovedCAIsRejected(t *testing.T) {
	server := &httpsServer{certificates: newTestSource(t), webhooks: newTestWebhooks(), log: logr.Discard()}
	server.clientAuth = certs.NewClientAuth(filepath.Join(t.TempDir(), "ca.crt"), nil, logr.Discard())
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate", nil)
	r.TLS = &tls.ConnectionState{}
	server.handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "not ready\n", w.Body.String())
	assert.Equal(t, "close", w.Header().Get("Connection"), "the client can reconnect")
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
}
