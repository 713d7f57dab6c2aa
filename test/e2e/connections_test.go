//go:build e2e

package e2e

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

const (
	// connectionsVariable sets how many connections are held open.
	connectionsVariable = "OVERRULE_CONNECTIONS"
	maxConnections      = 2048 // of the server
	fewConnections      = 3000
)

// More clients than the server has places open a connection, and send nothing,
// half a ClientHello, or, after a handshake, half a request. Calls that each need
// a new connection, as an API server's first call does, are answered meanwhile.
// internal/server has the limits and timeouts of each kind of connection.
func TestHalfOpenConnectionsDoNotBlockCalls(t *testing.T) {
	env.Long(t)
	n := fewConnections
	if text := os.Getenv(connectionsVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err, connectionsVariable)
	}
	var limit syscall.Rlimit // Go raises the soft limit to the hard one by itself
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.GreaterOrEqual(t, limit.Cur, uint64(n+1000), "files that this process may open: raise the hard limit (ulimit -Hn)")
	c := exclusive(t)
	g := c.prepare(t, "siege")
	succeed(t, g.apply(gatewayLimits))
	s := server.Start(t, c.Env, server.Options{})
	t.Cleanup(func() { requireNoPanic(t, s) })
	calls := func() {
		for range 20 {
			status, answer, err := sendForged(t.Context(), s, c.path(t), g)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, answer, "ConstraintViolated: ")
		}
	}
	calls()
	files, goroutines := gauge(t, s, "process_open_fds"), gauge(t, s, "go_goroutines")

	held := holdConnections(t, s.Webhook, n)
	calls()
	assert.LessOrEqual(t, gauge(t, s, "process_open_fds"), files+maxConnections+10, "no more than the limit")
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	t.Logf("%d connections: %.0f MiB, %.0f goroutines", n, gauge(t, s, "process_resident_memory_bytes")/(1<<20), gauge(t, s, "go_goroutines"))

	for _, conn := range held {
		_ = conn.Close() // the server has closed the oldest
	}
	soon(t, func() bool {
		return gauge(t, s, "process_open_fds") <= files+10 && gauge(t, s, "go_goroutines") <= goroutines+50
	}, "files or goroutines are leaked")
	calls()
}

// holdConnections opens n connections, from several goroutines, which are closed
// when the test ends.
func holdConnections(t *testing.T, address string, n int) []net.Conn {
	t.Helper()
	const dialers = 32
	hello := partialClientHello(t)
	held := make([]net.Conn, n)
	var group sync.WaitGroup
	for first := range dialers {
		group.Go(func() {
			for i := first; i < n; i += dialers {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
				if !assert.NoError(t, err) {
					return
				}
				held[i] = conn
				_ = conn.SetDeadline(time.Now().Add(env.Patience))
				// The server may close it meanwhile, in favor of a newer one.
				switch i % 3 {
				case 0:
					_, _ = conn.Write(hello)
				case 1:
					secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
					_, _ = secure.Write([]byte("POST /validate HTTP/1.1\r\nHost: over"))
				}
			}
		})
	}
	group.Wait()
	t.Cleanup(func() {
		for _, conn := range held {
			if conn != nil {
				_ = conn.Close()
			}
		}
	})
	require.False(t, t.Failed())
	return held
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
