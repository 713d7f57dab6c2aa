package certs

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// wakeup wakes a loop. Any number of pending signals count as one.
type wakeup chan struct{}

func newWakeup() wakeup { return make(wakeup, 1) }

// signal ends the current wait, or the next one.
func (w wakeup) signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// wait returns after a signal, after delay, or when ctx ends.
func (w wakeup) wait(ctx context.Context, c clock.Clock, delay time.Duration) {
	timer := c.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w:
	case <-timer.C():
	}
}
