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
		assert.GreaterOrEqual(t, b.MaxTimeout(), timeout, "the server's own webhooks")
		assert.GreaterOrEqual(t, b.validity(timeout), renewInterval+leaseTimeout, "one renewal may get no response")
	}
	assert.Equal(t, time.Minute, NewBounds(3*time.Second, time.Minute).Lease)
}

// A lease that was renewed when the next renewal is due is valid for MaxTimeout, and not for
// a second more.
func TestMaxTimeout(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		5 * time.Second: 2 * time.Second, 7 * time.Second: 4 * time.Second, 14 * time.Second: 11 * time.Second, time.Minute: 57 * time.Second,
	} {
		b := NewBounds(time.Second, lease)
		assert.Equal(t, want, b.MaxTimeout(), lease)
		assert.Greater(t, b.validity(b.MaxTimeout()), renewInterval)
		assert.LessOrEqual(t, b.validity(b.MaxTimeout()+time.Second), renewInterval)
	}
}
