package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newClientCertificate returns a client certificate.
func newClientCertificate(t *testing.T, ca *signer, template x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber = big.NewInt(1)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-hour), time.Now().Add(hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.cert, key.Public(), ca.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func withCommonName(name string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name}}
}

// authServer is a server that requires client certificates.
type authServer struct {
	*ClientAuth
	t      *testing.T
	server *httptest.Server
	file   string
}

func newAuthServer(t *testing.T, ca []byte, subjects ...string) *authServer {
	t.Helper()
	g := &authServer{t: t, file: filepath.Join(t.TempDir(), "clients.crt")}
	if ca != nil {
		g.write(ca)
	}
	g.ClientAuth = NewClientAuth(g.file, subjects, logr.Discard())
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Verify(*r.TLS); err != nil {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	g.server.TLS = g.Require(&tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &g.server.TLS.Certificates[0], nil
	}})
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	return g
}

func (g *authServer) write(ca []byte) {
	g.t.Helper()
	require.NoError(g.t, os.WriteFile(g.file, ca, 0o600))
}

// call sends a request on a new connection.
func (g *authServer) call(certs ...tls.Certificate) error {
	g.t.Helper()
	own := g.server.Client().Transport.(*http.Transport).Clone()
	own.TLSClientConfig.Certificates = certs
	defer own.CloseIdleConnections()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.server.URL, nil)
	require.NoError(g.t, err)
	response, err := own.RoundTrip(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestClientCertificatesAreVerified(t *testing.T) {
	now := time.Now()
	ca, other := newTestSigner(t, now), newTestSigner(t, now)
	expired := withCommonName("kube-apiserver")
	expired.NotBefore, expired.NotAfter = now.Add(-2*hour), now.Add(-hour)
	spiffe, err := url.Parse("spiffe://cluster/apiserver")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		subjects []string
		by       *signer
		as       x509.Certificate
		refused  string
	}{
		"any that the authorities signed":      {by: ca, as: withCommonName("any")},
		"one that another signed":              {by: other, as: withCommonName("kube-apiserver"), refused: "bad certificate"},
		"one that is expired":                  {by: ca, as: expired, refused: "bad certificate"},
		"one by its common name":               {subjects: []string{"other", "kube-apiserver"}, by: ca, as: withCommonName("kube-apiserver")},
		"one by its DNS name":                  {subjects: []string{"api.internal"}, by: ca, as: x509.Certificate{DNSNames: []string{"api.internal"}}},
		"one by its URI":                       {subjects: []string{spiffe.String()}, by: ca, as: x509.Certificate{URIs: []*url.URL{spiffe}}},
		"one by its address":                   {subjects: []string{"10.0.0.1"}, by: ca, as: x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}},
		"one by its e-mail":                    {subjects: []string{"a@b.c"}, by: ca, as: x509.Certificate{EmailAddresses: []string{"a@b.c"}}},
		"another name":                         {subjects: []string{"kube-apiserver"}, by: ca, as: withCommonName("system:node:a"), refused: "bad certificate"},
		"no name, where none is not a subject": {subjects: []string{"kube-apiserver"}, by: ca, as: x509.Certificate{}, refused: "bad certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newAuthServer(t, ca.certPEM, c.subjects...)
			g.record(g.reload())
			require.NoError(t, g.Healthy(nil))
			require.ErrorContains(t, g.call(), "certificate required")
			err := g.call(newClientCertificate(t, c.by, c.as))
			if c.refused == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.refused)
		})
	}
}

func TestClientCAsAreReloaded(t *testing.T) {
	old, next := newTestSigner(t, time.Now()), newTestSigner(t, time.Now())
	previous, after := newClientCertificate(t, old, withCommonName("a")), newClientCertificate(t, next, withCommonName("a"))
	g := newAuthServer(t, nil)
	require.ErrorIs(t, g.Healthy(nil), ErrNoAuthorities)
	g.record(g.reload())
	require.ErrorIs(t, g.Healthy(nil), ErrNoAuthorities)
	require.ErrorContains(t, g.Healthy(nil), g.file+": no such file or directory: provide certificates in PEM format")
	require.Error(t, g.call(previous), "no client is accepted before the CAs are loaded")
	require.NoError(t, g.Problem())

	g.write(old.certPEM)
	g.record(g.reload())
	require.NoError(t, g.Healthy(nil))
	require.NoError(t, g.call(previous))
	require.Error(t, g.call(after))

	g.write(bytes.Join([][]byte{old.certPEM, next.certPEM}, nil))
	g.record(g.reload())
	require.NoError(t, g.call(previous))
	require.NoError(t, g.call(after))

	g.write(next.certPEM[:len(next.certPEM)-30])
	g.record(g.reload())
	require.NoError(t, g.Healthy(nil))
	require.ErrorContains(t, g.Problem(), g.file+": ")
	require.ErrorContains(t, g.Problem(), "; the previous client CAs stay in use")
	require.NoError(t, g.call(previous))

	g.write(next.certPEM)
	g.record(g.reload())
	require.NoError(t, g.Problem())
	require.Error(t, g.call(previous))
	require.NoError(t, g.call(after))
	assert.False(t, g.NeedLeaderElection())
}

// A connection can outlive the CAs that verified its handshake.
func TestConnectionIsRejectedAfterItsCAIsRemoved(t *testing.T) {
	old, next := newTestSigner(t, time.Now()), newTestSigner(t, time.Now())
	g := newAuthServer(t, old.certPEM)
	g.record(g.reload())
	client := g.server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{newClientCertificate(t, old, withCommonName("a"))}
	is := func(want int, why string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.server.URL, nil)
		require.NoError(t, err)
		got := 0
		if response, err := client.Do(r); err == nil {
			require.NoError(t, response.Body.Close())
			got = response.StatusCode
		}
		assert.Equal(t, want, got, why)
	}
	is(http.StatusOK, "it was accepted")
	g.write(bytes.Join([][]byte{old.certPEM, next.certPEM}, nil))
	g.record(g.reload())
	is(http.StatusOK, "an additional CA")
	g.write(next.certPEM)
	g.record(g.reload())
	is(http.StatusServiceUnavailable, "its CA was removed")
	is(0, "and its connection: the next handshake fails")
	g.write(old.certPEM)
	g.record(g.reload())
	is(http.StatusOK, "its CA was added again")
}
