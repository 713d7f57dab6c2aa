package main

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

// caller is a client that keeps its connection.
type caller struct {
	*tls.Conn
	in *bufio.Reader
}

const someReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`

// someRequest is one that is answered, and whose connection is kept.
var someRequest = fmt.Sprintf("POST %s HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
	webhook.PathValidate, len(someReview), someReview)

// told is what an answer says, but for its body.
type told struct {
	status int
	after  string
	close  bool
}

var farewellTold = told{http.StatusServiceUnavailable, "1", true}

func (c *caller) ask(t *testing.T) told {
	t.Helper()
	_, err := io.WriteString(c, someRequest)
	require.NoError(t, err)
	return c.hear(t)
}

func (c *caller) hear(t *testing.T) told {
	t.Helper()
	response, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return told{response.StatusCode, response.Header.Get("Retry-After"), response.Close}
}

func (c *caller) ended(t *testing.T) {
	t.Helper()
	_, err := c.in.ReadByte()
	assert.ErrorIs(t, err, io.EOF, "the connection ends, and is not reset")
	require.NoError(t, c.Close())
}

func (g *given) call(t *testing.T, url string, protocols ...string) *caller {
	t.Helper()
	config := g.client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = protocols
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &caller{conn.(*tls.Conn), bufio.NewReader(conn)}
}

func TestWhoeverWaitsIsToldFarewell(t *testing.T) {
	certificates := newGiven(t)
	d := &frontDoor{address: "127.0.0.1:0", connections: 10, hooks: hooks(), certificates: certificates}
	d.waiting.limit = time.Minute // they are slower here than an API server is
	url, leave, ended := opened(t, d)
	used, unused, crossing := certificates.call(t, url), certificates.call(t, url), certificates.call(t, url)
	require.Equal(t, told{status: http.StatusOK}, used.ask(t))
	require.Equal(t, told{status: http.StatusOK}, crossing.ask(t))
	require.Eventually(t, func() bool { return idle(&d.waiting) == 3 }, time.Minute, time.Millisecond)

	leave()
	for name, c := range map[string]*caller{"used": used, "not used yet": unused} {
		assert.Equal(t, farewellTold, c.hear(t), name)
		c.ended(t)
	}
	// It sent a request before it has read the farewell.
	assert.Equal(t, farewellTold, crossing.ask(t))
	crossing.ended(t)
	require.NoError(t, <-ended)
}

// idle is how many connections wait for a request.
func idle(w *waiting) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.conns {
		one.Lock()
		if !one.busy {
			n++
		}
		one.Unlock()
	}
	return n
}

func TestAConnectionThatIsNoHTTP1IsNotToldFarewell(t *testing.T) {
	certificates := newGiven(t)
	var w waiting
	url := noted(t, &w, certificates, http.NotFound)
	c := certificates.call(t, url, "h2")
	require.Equal(t, "h2", c.ConnectionState().NegotiatedProtocol)
	w.dismiss()
	require.NoError(t, c.CloseWrite())
	heard, err := io.ReadAll(c.in)
	require.NoError(t, err)
	assert.NotContains(t, string(heard), "HTTP/1.1")
}

func TestAFarewellDoesNotWaitForAHandshake(t *testing.T) {
	here, there := net.Pipe()
	conn := tls.Server(here, certs.TLSConfig(newGiven(t)))
	var w waiting
	w.note(conn, http.StateNew)
	shaking := make(chan error, 1)
	go func() { shaking <- conn.HandshakeContext(t.Context()) }() // the other side says nothing
	done := make(chan struct{})
	go func() {
		w.dismiss()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
	require.NoError(t, there.Close())
	assert.Error(t, <-shaking)
}

func TestWhoeverHasAskedIsNotToldFarewell(t *testing.T) {
	certificates := newGiven(t)
	arrived, answer := make(chan struct{}), make(chan struct{})
	var w waiting
	url := noted(t, &w, certificates, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-answer
	})
	c := certificates.call(t, url)
	_, err := io.WriteString(c, someRequest)
	require.NoError(t, err)
	<-arrived
	w.dismiss()
	close(answer)
	assert.Equal(t, http.StatusOK, c.hear(t).status)
}

// noted runs a server whose connections are noted.
func noted(t *testing.T, w *waiting, certificates *given, answer http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.EnableHTTP2, server.Config.ConnState = true, w.note
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificates.pair}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}
