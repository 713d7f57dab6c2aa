package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUsageGrowsWithWhatAProgramDoes(t *testing.T) {
	p := shell(t, `while :; do :; done`)
	var got Usage
	require.Eventually(t, func() bool {
		var err error
		got, err = p.Usage()
		require.NoError(t, err)
		return got.CPU >= 20*time.Millisecond
	}, time.Minute, time.Millisecond)
	assert.Greater(t, got.Peak, uint64(100<<10), "a shell has at least 100 KiB")
	assert.Less(t, got.Peak, uint64(100<<20))
	assert.Greater(t, got.Held, uint64(100<<10))
	assert.LessOrEqual(t, got.Held, got.Peak)
}

func TestAProgramThatHasEndedHasNoUsage(t *testing.T) {
	p := shell(t, "true")
	<-p.Done()
	_, err := p.Usage()
	assert.ErrorContains(t, err, "look at sh (pid ")
}
