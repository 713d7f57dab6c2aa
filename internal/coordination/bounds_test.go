package coordination

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLeaseForATimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second: 5 * time.Second, 3 * time.Second: 7 * time.Second, 10 * time.Second: 14 * time.Second, 30 * time.Second: 34 * time.Second,
	} {
		b := NewBounds(timeout, 0)
		assert.Equal(t, Bounds{Timeout: timeout, Lease: want, Store: DefaultStoreTime, Drift: DefaultDrift}, b)
		assert.NoError(t, b.checkTimeout(timeout), "the server's own webhooks")
		assert.GreaterOrEqual(t, b.validity(timeout), renewInterval+leaseTimeout, "one renewal may get no response")
	}
	assert.Equal(t, time.Minute, NewBounds(3*time.Second, time.Minute).Lease)
}
