//go:build e2e

package certmanager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/volume"
)

// servingHost is the server name in TLS calls of the API server.
const servingHost = server.Name + "." + server.Namespace + ".svc"

// served is a server with a certificate of cert-manager.
type served struct {
	*server.Server
	dir string // of its files
}

// serve mounts the Secret of the Certificate and runs a server on it, until the API
// server calls it.
func serve(t *testing.T) *served {
	t.Helper()
	site, err := server.Install(t.Context(), plane)
	require.NoError(t, err)
	s := &served{dir: t.TempDir()}
	volume.Mount(t, s.dir, awaitIssued(t, servingName, 1))
	s.Server, err = site.Boot(t.Context(), server.Options{Args: []string{
		"--certificates=cert-manager", "--cert-dir=" + s.dir, "--log-level=debug",
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop())
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.Tail())
		}
		unregister(t)
	})
	return s
}

// unregister deletes the webhook configurations of a server that has stopped.
func unregister(t *testing.T) {
	t.Helper()
	got := plane.Kubectl("delete", "--ignore-not-found", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule")
	assert.Zero(t, got.Code, got.Stderr)
}

// handshake dials the server as for a new connection of the API server: it trusts
// the current CA bundle of the webhook configurations. It returns the serving
// certificate.
func (s *served) handshake(ctx context.Context) (*x509.Certificate, error) {
	bundles, err := caBundles(ctx)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if len(bundles) == 0 || !roots.AppendCertsFromPEM(bundles[0]) {
		return nil, errors.New("the webhook configuration has no CA bundle")
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: servingHost, MinVersion: tls.VersionTLS13}}
	conn, err := dialer.DialContext(ctx, "tcp", s.Webhook)
	if err != nil {
		return nil, fmt.Errorf("TLS handshake with the server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// mount writes a new version of the Secret, and waits until the server uses it.
func (s *served) mount(t *testing.T, secret map[string][]byte) {
	t.Helper()
	want := parsed(t, secret)
	volume.Mount(t, s.dir, secret)
	soon(t, func() bool {
		got, err := s.handshake(t.Context())
		return err == nil && got.Equal(want)
	}, func() string { return "the server goes on serving the certificate before:\n" + s.Tail() })
}
