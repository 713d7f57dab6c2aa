//go:build e2e

package e2e

import (
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// serviceProxy forwards TCP connections as a Service does: a new connection goes
// to one of the current backends, an open one stays with its backend.
type serviceProxy struct {
	listener net.Listener
	backends atomic.Pointer[[]string]
	next     atomic.Uint64
	open     sync.Map // client connections
}

func newServiceProxy(t *testing.T) *serviceProxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	r := &serviceProxy{listener: listener}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(client)
		}
	}()
	return r
}

// flag returns the server's flag for the port of the proxy.
func (r *serviceProxy) flag() string {
	return "--service-port=" + strconv.Itoa(int(r.port()))
}

func (r *serviceProxy) port() int32 {
	return int32(r.listener.Addr().(*net.TCPAddr).Port)
}

// setBackends sets the backends of new connections, in round-robin order.
func (r *serviceProxy) setBackends(addresses ...string) { r.backends.Store(&addresses) }

// closeConnections closes all connections, and each new one until setBackends is
// called.
func (r *serviceProxy) closeConnections() {
	r.setBackends()
	r.open.Range(func(client, _ any) bool {
		_ = client.(net.Conn).Close()
		return true
	})
}

func (r *serviceProxy) serve(client net.Conn) {
	r.open.Store(client, nil)
	defer r.open.Delete(client)
	defer func() { _ = client.Close() }()
	addresses := r.backends.Load()
	if addresses == nil || len(*addresses) == 0 {
		return
	}
	address := (*addresses)[r.next.Add(1)%uint64(len(*addresses))]
	backend, err := new(net.Dialer).Dial("tcp", address)
	if err != nil {
		return
	}
	go func() {
		defer func() { _ = client.Close() }()
		_, _ = io.Copy(client, backend)
	}()
	defer func() { _ = backend.Close() }()
	_, _ = io.Copy(backend, client)
}
