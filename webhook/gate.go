package webhook

import (
	"context"
	"runtime"
	"sync/atomic"
)

// gate lets a number of reviews be judged at once and a number wait, so that
// overload is answered and never piles up.
type gate struct {
	places  chan struct{}
	waiting *atomic.Int64
	queue   int64
}

// newGate returns a gate; numbers that are not positive mean defaults.
func newGate(places, queue int) gate {
	if places <= 0 {
		places = 4 * runtime.GOMAXPROCS(0)
	}
	if queue <= 0 {
		queue = 1024
	}
	return gate{make(chan struct{}, places), new(atomic.Int64), int64(queue)}
}

// enter waits for a place until ctx ends. ok is false where none came free, or
// too many wait already.
func (g gate) enter(ctx context.Context) (leave func(), ok bool) {
	leave = func() { <-g.places }
	select {
	case g.places <- struct{}{}:
		return leave, true
	default:
	}
	if g.waiting.Add(1) > g.queue {
		g.waiting.Add(-1)
		return nil, false
	}
	defer g.waiting.Add(-1)
	select {
	case g.places <- struct{}{}:
		return leave, true
	case <-ctx.Done():
		return nil, false
	}
}
