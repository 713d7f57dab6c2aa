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

// serviceProxy does what a Service in a cluster does: a new connection goes to one of
// the backends of the moment, and an old one stays where it is.
type serviceProxy struct {
	listener net.Listener
	backends atomic.Pointer[[]string]
	next     atomic.Uint64
	open     sync.Map // the connections of clients
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

// flag is the server's flag that leads the API server to the relay.
func (r *serviceProxy) flag() string {
	return "--service-port=" + strconv.Itoa(int(r.port()))
}

func (r *serviceProxy) port() int32 {
	return int32(r.listener.Addr().(*net.TCPAddr).Port)
}

// setBackends sends new connections to backends, each in turn.
func (r *serviceProxy) setBackends(addresses ...string) { r.backends.Store(&addresses) }

// closeConnections closes all connections, and each one that comes, until it leads somewhere
// again.
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
