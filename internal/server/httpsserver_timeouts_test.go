package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipeListener accepts in-memory connections, whose deadlines use the clock of synctest.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipeListener) dial() net.Conn {
	here, peer := net.Pipe()
	p.conns <- here
	return peer
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestConnectionTimeouts(t *testing.T) {
	for name, c := range map[string]struct {
		plain bool // no handshake
		send  func(*testing.T, net.Conn)
		want  time.Duration // until the server closes the connection
		reads string        // how the response starts
	}{
		"the handshake": {plain: true, send: func(*testing.T, net.Conn) {}, want: 15 * time.Second},
		// An API server keeps connections that it dialed and did not need.
		"the first request": {send: func(*testing.T, net.Conn) {}, want: 2 * time.Minute},
		"the next request, if the first one was late": {send: func(t *testing.T, conn net.Conn) {
			t.Helper()
			time.Sleep(110 * time.Second)
			_, err := io.WriteString(conn, someRequest)
			require.NoError(t, err)
		}, want: 110*time.Second + 2*time.Minute, reads: "HTTP/1.1 200 OK\r\n"},
		"a header of one byte a second": {send: func(_ *testing.T, conn net.Conn) {
			for _, err := io.WriteString(conn, "P"); err == nil; _, err = io.WriteString(conn, "O") {
				time.Sleep(time.Second)
			}
		}, want: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				certificates, listener := newTestSource(t), newPipeListener()
				server := (&httpsServer{webhooks: newTestWebhooks(), certificates: certificates}).server(newConnTracker(10))
				var serving sync.WaitGroup
				serving.Go(func() { assert.ErrorIs(t, server.ServeTLS(listener, "", ""), http.ErrServerClosed) })
				conn := listener.dial()
				if !c.plain {
					conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
					require.NoError(t, conn.(*tls.Conn).HandshakeContext(t.Context()))
				}
				begun := time.Now()
				serving.Go(func() { c.send(t, conn) })
				got, _ := io.ReadAll(conn)
				assert.Equal(t, c.want, time.Since(begun))
				assert.True(t, strings.HasPrefix(string(got), c.reads), string(got))
				_ = conn.Close() // fails: the server has closed the connection
				require.NoError(t, server.Close())
				serving.Wait()
			})
		})
	}
}
