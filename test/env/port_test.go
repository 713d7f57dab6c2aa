package env

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFreePortsAreUnique(t *testing.T) {
	ports := make(map[int32]bool)
	for range 200 {
		port, err := FreePort(t.Context())
		require.NoError(t, err)
		assert.False(t, ports[port], port)
		ports[port] = true
	}
}
