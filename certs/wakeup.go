package certs

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// hints wake a loop: one is enough for any number of events.
type wakeup chan struct{}

func newWakeup() wakeup { return make(wakeup, 1) }

// hint has the loop look now.
func (h wakeup) signal() {
	select {
	case h <- struct{}{}:
	default:
	}
}

// sleep waits for a hint, or for a pause to be over.
func (h wakeup) wait(ctx context.Context, c clock.Clock, pause time.Duration) {
	timer := c.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-h:
	case <-timer.C():
	}
}
