//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// connHolder opens connections to a server and sends no request on any of them.
type connHolder struct {
	hello  []byte        // half a ClientHello
	opened chan struct{} // closed once all are open

	ended   sync.WaitGroup
	mu      sync.Mutex
	conns   []net.Conn
	failed  []error
	open    map[string]int           // by behavior, those that the server has not closed yet
	longest map[string]time.Duration // by behavior, the longest time until the server closed one
}

// connBehavior is what a connection does instead of sending a request. It returns
// once the connection is of no more use.
type connBehavior struct {
	name string
	say  func(context.Context, *connHolder, net.Conn)
}

// slow is the behavior that the server allows for two minutes.
const slow = "one byte a second"

// connBehaviors are used by the connections in turn.
var connBehaviors = []connBehavior{
	{"silence", func(_ context.Context, _ *connHolder, conn net.Conn) {
		_, _ = io.Copy(io.Discard, conn)
	}},
	{"half a ClientHello", func(_ context.Context, b *connHolder, conn net.Conn) {
		_, _ = conn.Write(b.hello)
		_, _ = io.Copy(io.Discard, conn)
	}},
	{slow, func(ctx context.Context, _ *connHolder, conn net.Conn) {
		secure, ok := handshake(ctx, conn)
		for _, char := range []byte("POST /validate HTTP/1.1\r\nHost: overrule\r\nX-Never: ending") {
			if !ok || !sendByte(secure, char) {
				return
			}
		}
	}},
}

// handshake reports whether a handshake completed.
func handshake(ctx context.Context, conn net.Conn) (*tls.Conn, bool) {
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	return secure, secure.HandshakeContext(ctx) == nil
}

// sendByte sends a byte and waits for a second. It returns false once the server
// has closed the connection.
func sendByte(conn net.Conn, char byte) bool {
	if _, err := conn.Write([]byte{char}); err != nil {
		return false
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	_, err := conn.Read(make([]byte, 1))
	late, ok := err.(net.Error) //nolint:errorlint // it is not wrapped
	return ok && late.Timeout()
}

// partialClientHello returns the first half of a ClientHello.
func partialClientHello(t *testing.T) []byte {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(there, &tls.Config{ServerName: "overrule.overrule-system.svc"}).HandshakeContext(t.Context())
	}()
	record := make([]byte, 4096)
	n, err := here.Read(record)
	require.NoError(t, err)
	require.NoError(t, here.Close())
	return record[:n/2]
}

// holdConnections starts to open n connections as fast as possible, and keeps
// them open.
func holdConnections(t *testing.T, address string, connections int) *connHolder {
	t.Helper()
	b := &connHolder{hello: partialClientHello(t), opened: make(chan struct{}), open: map[string]int{}, longest: map[string]time.Duration{}}
	var next atomic.Int64
	var dialers sync.WaitGroup
	for range 32 {
		dialers.Go(func() {
			for n := next.Add(1) - 1; n < int64(connections); n = next.Add(1) - 1 {
				conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", address)
				b.hold(t.Context(), conn, err, connBehaviors[n%int64(len(connBehaviors))])
			}
		})
	}
	go func() { dialers.Wait(); close(b.opened) }()
	t.Cleanup(func() { <-b.opened; b.closeAll() })
	return b
}

// hold runs the behavior of a connection, and records how long the server keeps
// it open.
func (b *connHolder) hold(ctx context.Context, conn net.Conn, err error, m connBehavior) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.failed = append(b.failed, err)
		return
	}
	b.conns = append(b.conns, conn)
	b.open[m.name]++
	begun := time.Now()
	b.ended.Go(func() {
		m.say(ctx, b, conn)
		_ = conn.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open[m.name]--
		b.longest[m.name] = max(b.longest[m.name], time.Since(begun))
	})
}

// openExcept returns how many connections the server has not closed, of all
// behaviors except one.
func (b *connHolder) openExcept(but string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := 0
	for name, open := range b.open {
		if name != but {
			left += open
		}
	}
	return left
}

// closeAll closes the connections that are still open.
func (b *connHolder) closeAll() {
	b.mu.Lock()
	for _, conn := range b.conns {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.ended.Wait()
}

// requireOpenFiles fails a test if this process may not open enough files, since
// a skipped test would go unnoticed. Go raises the soft limit to the hard one by
// itself.
func requireOpenFiles(t *testing.T, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.GreaterOrEqual(t, limit.Cur, files, "files that this process may open: raise the hard limit (ulimit -Hn)")
}
