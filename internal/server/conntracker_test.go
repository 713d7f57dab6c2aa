package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/webhook"
)

// clientConn is a client that keeps its connection.
type clientConn struct {
	*tls.Conn
	in *bufio.Reader
}

const someReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`

// someRequest is a valid request, after which the connection is kept.
var someRequest = fmt.Sprintf("POST %s HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
	webhook.PathValidate, len(someReview), someReview)

// response is a response without its body.
type response struct {
	status     int
	retryAfter string
	close      bool
}

var (
	responseOK          = response{status: http.StatusOK}
	responseUnavailable = response{http.StatusServiceUnavailable, "1", true}
)

func (c *clientConn) roundTrip(t *testing.T) response {
	t.Helper()
	_, err := io.WriteString(c, someRequest)
	require.NoError(t, err)
	return c.readResponse(t)
}

func (c *clientConn) readResponse(t *testing.T) response {
	t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	_, err = io.Copy(io.Discard, r.Body)
	require.NoError(t, err)
	return response{r.StatusCode, r.Header.Get("Retry-After"), r.Close}
}

func (c *clientConn) requireEOF(t *testing.T) {
	t.Helper()
	_, err := c.in.ReadByte()
	assert.ErrorIs(t, err, io.EOF, "the connection ends, and is not reset")
	require.NoError(t, c.Close())
}

func (g *testSource) dial(t *testing.T, url string) *clientConn {
	t.Helper()
	config := g.client().Transport.(*http.Transport).TLSClientConfig
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &clientConn{conn.(*tls.Conn), bufio.NewReader(conn)}
}

// serveTracked runs a server whose connections are tracked.
func serveTracked(t *testing.T, conns *connTracker, certificates *testSource, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = conns.track
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificates.pair}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func awaitIdle(t *testing.T, conns *connTracker, want int) {
	t.Helper()
	require.Eventually(t, func() bool { return conns.idleCount() == want }, time.Minute, time.Millisecond)
}

func TestShutdownRespondsOnIdleConnections(t *testing.T) {
	certificates := newTestSource(t)
	url, shutdown, ended := startServer(t, &httpsServer{address: "127.0.0.1:0", connections: 10, webhooks: newTestWebhooks(), certificates: certificates})
	c := certificates.dial(t, url)
	shutdown()
	assert.Equal(t, responseUnavailable, c.readResponse(t))
	c.requireEOF(t)
	require.NoError(t, <-ended)
}

func TestRequestThatArrivesWhenItsConnectionIsClosedGetsTheResponse(t *testing.T) {
	certificates, conns := newTestSource(t), newConnTracker(10)
	url := serveTracked(t, conns, certificates, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	used, unused := certificates.dial(t, url), certificates.dial(t, url)
	require.Equal(t, responseOK, used.roundTrip(t))
	awaitIdle(t, conns, 2)
	conns.closeIdle(time.Now().Add(time.Minute))
	for name, c := range map[string]*clientConn{"used": used, "unused": unused} {
		assert.Equal(t, responseUnavailable, c.roundTrip(t), name)
		c.requireEOF(t)
	}
	awaitIdle(t, conns, 0)
}

func TestConnectionWithRequestInFlightIsNotClosed(t *testing.T) {
	certificates, conns := newTestSource(t), newConnTracker(10)
	arrived, answer := make(chan struct{}), make(chan struct{})
	url := serveTracked(t, conns, certificates, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-answer
	})
	c := certificates.dial(t, url)
	_, err := io.WriteString(c, someRequest)
	require.NoError(t, err)
	<-arrived
	conns.closeIdle(time.Now().Add(time.Minute))
	close(answer)
	assert.Equal(t, responseOK, c.readResponse(t))
}

func TestClosingDoesNotWaitForHandshake(t *testing.T) {
	here, peer := net.Pipe()
	conn := tls.Server(here, certs.TLSConfig(newTestSource(t)))
	conns := newConnTracker(10)
	conns.track(conn, http.StateNew)
	handshake := make(chan error, 1)
	go func() { handshake <- conn.HandshakeContext(t.Context()) }() // the other side sends nothing
	conns.closeIdle(time.Now().Add(10 * time.Millisecond))          // hangs if it waits
	require.Error(t, <-handshake)
	require.NoError(t, peer.Close())
}

// lateDeadlineConn is a connection whose deadlines are moved when they are set, as by
// net/http if it starts to serve a connection at the same moment.
type lateDeadlineConn struct{ net.Conn }

// SetDeadline implements net.Conn.
func (p lateDeadlineConn) SetDeadline(time.Time) error {
	return p.Conn.SetDeadline(time.Now().Add(time.Hour))
}

func TestClosingDoesNotWaitForHandshakeWhoseDeadlineIsMoved(t *testing.T) {
	here, peer := net.Pipe()
	conn := tls.Server(lateDeadlineConn{here}, certs.TLSConfig(newTestSource(t)))
	conns := newConnTracker(10)
	conns.track(conn, http.StateNew)
	conns.closeIdle(time.Now().Add(10 * time.Millisecond)) // hangs if it waits
	require.NoError(t, peer.Close())
}

// states reports states of a connection to a tracker, and returns the other end.
func states(t *testing.T, conns *connTracker, states ...http.ConnState) (conn *tls.Conn, closed func() bool) {
	t.Helper()
	here, peer := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), peer.Close() })
	conn = tls.Server(here, &tls.Config{MinVersion: tls.VersionTLS13})
	for _, state := range states {
		conns.track(conn, state)
	}
	return conn, func() bool {
		_ = peer.SetReadDeadline(time.Now()) // fails if it is closed
		_, err := peer.Read(make([]byte, 1))
		return err == io.EOF //nolint:errorlint // net.Pipe does not wrap it
	}
}

func TestAtTheLimitTheOldestUnusedConnectionIsClosed(t *testing.T) {
	conns := newConnTracker(4)
	_, used := states(t, conns, http.StateNew, http.StateActive, http.StateIdle)
	_, inFlight := states(t, conns, http.StateNew, http.StateActive)
	_, first := states(t, conns, http.StateNew)
	assert.False(t, first(), "the limit is not reached")
	second, secondClosed := states(t, conns, http.StateNew)
	assert.True(t, first())
	assert.False(t, secondClosed())
	assert.Equal(t, 2, conns.idleCount())

	conns.track(second, http.StateActive)
	_, third := states(t, conns, http.StateNew)
	assert.False(t, third(), "it is the only one")
	assert.False(t, used())
	assert.False(t, inFlight())
	assert.False(t, secondClosed())
}

func TestClosedConnectionsDoNotCount(t *testing.T) {
	conns := newConnTracker(3)
	for _, last := range []http.ConnState{http.StateClosed, http.StateHijacked} {
		states(t, conns, http.StateNew, last)
		states(t, conns, http.StateNew, http.StateActive, last)
		states(t, conns, http.StateNew, http.StateActive, http.StateIdle, last)
	}
	_, first := states(t, conns, http.StateNew)
	_, second := states(t, conns, http.StateNew)
	assert.False(t, first())
	assert.False(t, second())
	assert.Equal(t, 2, conns.idleCount())
}

func TestConnectionsWithoutTLSAreNotTracked(t *testing.T) {
	conns := newConnTracker(1)
	conn, _ := states(t, conns)
	conns.track(conn.NetConn(), http.StateNew)
	assert.Zero(t, conns.idleCount())
}
