//go:build e2e

package stale

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tcpProxy is the network between a server and the API server. It can block all
// traffic on open connections, and reset connections.
type tcpProxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	flows *sync.Cond // broadcast when blocked changes
	// blocked makes senders wait.
	blocked bool
	conns   map[net.Conn]bool
}

func newTCPProxy(t *testing.T, target string) *tcpProxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &tcpProxy{listener: listener, target: target, conns: make(map[net.Conn]bool)}
	l.flows = sync.NewCond(&l.mu)
	t.Cleanup(func() {
		_ = listener.Close()
		l.block(false)
		l.cut()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client)
		}
	}()
	return l
}

func (l *tcpProxy) address() string { return l.listener.Addr().String() }

func (l *tcpProxy) block(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = yes
	l.flows.Broadcast()
}

// cut resets all connections. New ones can be opened.
func (l *tcpProxy) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

// pass returns when traffic is not blocked.
func (l *tcpProxy) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.blocked {
		l.flows.Wait()
	}
}

func (l *tcpProxy) keep(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
}

func (l *tcpProxy) serve(client net.Conn) {
	l.keep(client)
	l.pass()
	target, err := new(net.Dialer).Dial("tcp", l.target)
	if err != nil {
		_ = client.Close()
		return
	}
	l.keep(target)
	go l.copy(client, target)
	l.copy(target, client)
}

func (l *tcpProxy) copy(to, from net.Conn) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	_, _ = io.Copy(gatedWriter{l, to}, from)
}

// gatedWriter writes when traffic is not blocked.
type gatedWriter struct {
	*tcpProxy
	io.Writer
}

func (g gatedWriter) Write(b []byte) (int, error) {
	g.pass()
	return g.Writer.Write(b)
}
