//go:build e2e

package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/faultproxy"
)

// serviceProxy forwards connections as a Service does, from the port of the webhook
// configurations.
type serviceProxy struct {
	*faultproxy.Proxy

	backend string // the first one
}

func newServiceProxy(t *testing.T) *serviceProxy {
	t.Helper()
	p, err := faultproxy.Start(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return &serviceProxy{Proxy: p}
}

// flag returns the server's flag for the port of the proxy.
func (s *serviceProxy) flag() string { return fmt.Sprintf("--service-port=%d", s.port()) }

func (s *serviceProxy) port() int32 {
	return int32(netip.MustParseAddrPort(s.Address()).Port())
}

// setBackends sets the servers of new connections, which get them in turn.
func (s *serviceProxy) setBackends(addresses ...string) {
	s.backend = addresses[0]
	s.SetTargets(addresses...)
}
