package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/webhook"
)

// limitedServer is a server with a connection limit.
type limitedServer struct {
	t            *testing.T
	certificates *testSource
	url, address string
}

func newLimitedServer(t *testing.T, connections int) *limitedServer {
	t.Helper()
	b := &limitedServer{t: t, certificates: newTestSource(t)}
	url, shutdown, ended := startServer(t, &httpsServer{address: "127.0.0.1:0", connections: connections, webhooks: newTestWebhooks(), certificates: b.certificates})
	b.url, b.address = url, strings.TrimPrefix(url, "https://")
	t.Cleanup(func() {
		shutdown()
		assert.NoError(t, <-ended)
	})
	return b
}

// requireResponds fails unless the server responds on a new connection.
func (b *limitedServer) requireResponds() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	client := b.certificates.client()
	defer client.CloseIdleConnections()
	response, err := client.Do(b.request(ctx, strings.NewReader(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`)))
	require.NoError(b.t, err)
	require.NoError(b.t, response.Body.Close())
	assert.Equal(b.t, http.StatusOK, response.StatusCode)
}

// request returns a call with the longest timeout: these tests are not about it.
func (b *limitedServer) request(ctx context.Context, body io.Reader) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+webhook.PathValidate+"?timeout=30s", body)
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// Like 10,000 connections at a limit of 2,048.
func TestSilentConnectionsAreEvicted(t *testing.T) {
	b := newLimitedServer(t, 20)
	for range 500 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
	}
	b.requireResponds()
}

func TestClientsWithoutThePathTokenOccupyNoConnections(t *testing.T) {
	for name, send := range map[string]string{
		"half a header":                       "POST /validate HTTP/1.1\r\nHost: ",
		"an unknown path":                     "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n",
		"an unknown path, and half of a body": "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
		"no HTTP":                             "\x00\x00\x00\x00",
		"an empty line":                       "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedServer(t, 2)
			for range 6 {
				_, err := io.WriteString(b.certificates.dial(t, b.url), send)
				require.NoError(t, err)
			}
			b.requireResponds()
		})
	}
}

func TestLargeHeaderIsRejected(t *testing.T) {
	b := newLimitedServer(t, 10)
	for length, want := range map[int]int{
		headerBytes / 2: http.StatusOK,
		headerBytes * 2: http.StatusRequestHeaderFieldsTooLarge,
	} {
		r := b.request(t.Context(), strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`))
		r.Header.Set("X-Long", strings.Repeat("x", length))
		response, err := b.certificates.client().Do(r)
		require.NoError(t, err, length)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want, response.StatusCode, length)
	}
	b.requireResponds()
}
