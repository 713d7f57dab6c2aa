package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
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

func TestConnectionsWithoutARequestAreEvicted(t *testing.T) {
	b := newLimitedServer(t, 2)
	dialer := tls.Dialer{Config: b.certificates.client().Transport.(*http.Transport).TLSClientConfig}
	for range 6 {
		conn, err := dialer.DialContext(t.Context(), "tcp", b.address)
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

func TestHTTP2IsNotServed(t *testing.T) {
	b := newLimitedServer(t, 10)
	config := b.certificates.client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	_, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", b.address)
	require.ErrorContains(t, err, "remote error: tls: no application protocol")
	config.NextProtos = []string{"h2", "http/1.1"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", b.address)
	require.NoError(t, err)
	assert.Equal(t, "http/1.1", conn.(*tls.Conn).ConnectionState().NegotiatedProtocol)
	require.NoError(t, conn.Close())
	b.requireResponds()
}

// endlessReader is a body of many spaces.
type endlessReader struct {
	left int
	sent atomic.Int64
}

func (e *endlessReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	copy(p, bytes.Repeat([]byte(" "), n))
	e.left -= n
	e.sent.Add(int64(n))
	return n, nil
}

func TestLargeBodyIsRejected(t *testing.T) {
	for name, length := range map[string]int64{"with length": 100 << 20, "in chunks": -1} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedServer(t, 10)
			body := &endlessReader{left: 100 << 20}
			r := b.request(t.Context(), body)
			r.ContentLength = length
			response, err := b.certificates.client().Do(r)
			if err == nil { // else the connection was closed while it was sent
				assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
				require.NoError(t, response.Body.Close())
			}
			assert.Less(t, body.sent.Load(), int64(50<<20), "most of it was never read")
			b.requireResponds()
		})
	}
}

// Compressed bodies are not decompressed: API servers do not send any.
func TestGzipBodyIsNotDecompressed(t *testing.T) {
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	_, err := io.Copy(packer, &endlessReader{left: 64 << 20})
	require.NoError(t, err)
	require.NoError(t, packer.Close())
	b := newLimitedServer(t, 10)
	r := b.request(t.Context(), &bomb)
	r.Header.Set("Content-Encoding", "gzip")
	response, err := b.certificates.client().Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), "invalid AdmissionReview: ")
	b.requireResponds()
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

func TestOldTLSVersionsAreRejected(t *testing.T) {
	b := newLimitedServer(t, 10)
	config := b.certificates.client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	_, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", b.address)
	require.ErrorContains(t, err, "remote error: tls: protocol version not supported")
	b.requireResponds()
}
