package server

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPeerAddress(t *testing.T) {
	for name, c := range map[string]struct {
		flag, podIP, listener, want string
	}{
		"the flag":           {"proxy:1", "10.0.0.1", "[::]:9444", "proxy:1"},
		"an IPv4 pod":        {"", "10.0.0.1", "[::]:9444", "10.0.0.1:9444"},
		"an IPv6 pod":        {"", "fd00::1", "[::]:9444", "[fd00::1]:9444"},
		"the bound address":  {"", "", "127.0.0.1:4321", "127.0.0.1:4321"},
		"no address at all":  {"", "", "[::]:9444", ""},
		"no address on IPv4": {"", "", "0.0.0.0:9444", ""},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.ResolveTCPAddr("tcp", c.listener)
			require.NoError(t, err)
			got, err := peerAddress(c.flag, c.podIP, listener)
			assert.Equal(t, c.want, got)
			if c.want == "" {
				assert.ErrorIs(t, err, errNoPeerAddress)
			}
		})
	}
}
