package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keepAliveClient returns the requests of a client that keeps its connection.
func (g *authServer) keepAliveClient(cert tls.Certificate) (request func() int) {
	g.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.CheckConnection(r); err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	server.TLS = g.Require(&tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &server.TLS.Certificates[0], nil
	}})
	server.Config.ConnContext = g.ConnContext
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	g.t.Cleanup(server.Close)
	client := server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
	return func() int {
		r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(g.t, err)
		response, err := client.Do(r)
		if err != nil {
			return 0
		}
		require.NoError(g.t, response.Body.Close())
		return response.StatusCode
	}
}

func TestConnectionIsRejectedAfterItsCAIsRemoved(t *testing.T) {
	old, next := newTestSigner(t, time.Now()), newTestSigner(t, time.Now())
	g := newAuthServer(t, old.certPEM)
	g.reload()
	request := g.keepAliveClient(newClientCertificate(t, old, withCommonName("a")))
	is := func(want int, why string) {
		t.Helper()
		assert.Equal(t, want, request(), why)
	}
	is(http.StatusOK, "it was accepted")
	is(http.StatusOK, "on the same connection")

	g.write(bytes.Join([][]byte{old.certPEM, next.certPEM}, nil))
	g.reload()
	is(http.StatusOK, "an additional CA")
	g.write(truncate(next.certPEM, 30))
	g.reload()
	is(http.StatusOK, "an invalid file changes nothing")

	g.write(next.certPEM)
	g.reload()
	is(http.StatusServiceUnavailable, "its CA was removed")
	is(0, "and its connection: the next handshake fails")

	g.write(old.certPEM)
	g.reload()
	is(http.StatusOK, "its CA was added again")
}

func TestConnectionIsRejectedAfterItsCertificateExpires(t *testing.T) {
	now := time.Now()
	ca := newTestSigner(t, now)
	g := newAuthServer(t, ca.certPEM)
	g.reload()
	with := func(notAfter time.Time) *http.Request {
		template := withCommonName("a")
		template.NotBefore, template.NotAfter = now.Add(-hour), notAfter
		cert, err := x509.ParseCertificate(newClientCertificate(t, ca, template).Certificate[0])
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(g.ConnContext(t.Context(), nil), http.MethodPost, "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		return r
	}
	alive := with(now.Add(hour))
	require.NoError(t, g.CheckConnection(alive))
	require.NoError(t, g.CheckConnection(alive))
	require.ErrorContains(t, g.CheckConnection(with(now.Add(-time.Minute))), "expired")

	bare := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	require.EqualError(t, g.CheckConnection(bare), "client certificate required")
	bare.TLS = alive.TLS
	require.NoError(t, g.CheckConnection(bare), "without ConnContext each request is verified")
	require.ErrorIs(t, newAuthServer(t, nil).CheckConnection(alive), ErrNoAuthorities)
}

func TestConnectionWithAcceptedSubjectStaysValid(t *testing.T) {
	ca := newTestSigner(t, time.Now())
	g := newAuthServer(t, ca.certPEM, "a")
	g.reload()
	request := g.keepAliveClient(newClientCertificate(t, ca, withCommonName("a")))
	assert.Equal(t, http.StatusOK, request())
}
