package webhook

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// Defaults of Options.
const (
	DefaultQueue = 1024
	DefaultMaxBytes  = 64 << 20 // a review that waits takes twice its size
	slotsPerCPU = 2
	minWeight     = 32 << 10 // what a review takes beside its bytes: a connection, stacks
	unknownLength      = -1       // net/http's length of a body that comes in chunks

	// A review takes up to thirty times its size while it is evaluated: many small
	// maps. Those that are large share judgedRoom beside their places.
	largeReview      = 256 << 10
	maxLargeReviewBytes = 6 << 20
)

// gate bounds what the server does at once: the bytes of the reviews that it
// has taken in, how many of them are judged, and how many wait for either. So
// overload is answered and never piles up.
type limiter struct {
	memory    *semaphore.Weighted
	memorySize    int64 // of the room, in bytes
	maxReview   int64 // the most that one review takes of it
	slots  chan struct{}
	largeReviews  *semaphore.Weighted // bytes of the large reviews that are evaluated
	maxQueue   int64
	waiting *atomic.Int64
	waitingGauge    prometheus.Gauge // waiting, for the metrics
}

// newGate returns a gate of options that have their defaults.
func newLimiter(o Options) limiter {
	return limiter{
		memory: semaphore.NewWeighted(o.MaxBytes), memorySize: o.MaxBytes, maxReview: o.BodyLimit,
		slots: make(chan struct{}, o.MaxConcurrent), largeReviews: semaphore.NewWeighted(maxLargeReviewBytes), maxQueue: int64(o.MaxQueue),
		waiting: new(atomic.Int64), waitingGauge: o.Metrics.waiting,
	}
}

// bounded fills in the bounds that are not positive.
func (o *Options) setLimitDefaults() {
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = slotsPerCPU * runtime.GOMAXPROCS(0)
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = DefaultQueue
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.BodyLimit <= 0 {
		o.BodyLimit = DefaultBodyLimit
	}
	if o.MaxObject <= 0 {
		o.MaxObject = DefaultMaxObject
	}
}

// load is the room that a review takes. The door holds it, and the judge too:
// one that outlasts its deadline still has the review in its hands.
type reservation struct {
	memory    *semaphore.Weighted
	weight  int64
	holders atomic.Int32
	arrived    time.Time
}

// take waits until ctx ends for the room of a review of a length in bytes. ok is
// false where there was none, or too many wait already: then there is nothing to
// drop.
func (g limiter) reserve(ctx context.Context, length int64) (l *reservation, ok bool) {
	if length == unknownLength || length > g.maxReview {
		length = g.maxReview
	}
	l = &reservation{memory: g.memory, weight: min(max(length, minWeight), g.memorySize), arrived: time.Now()}
	l.retain()
	return l, g.memory.TryAcquire(l.weight) || g.inQueue(func() bool { return g.memory.Acquire(ctx, l.weight) == nil })
}

func (l *reservation) retain() { l.holders.Add(1) }

// drop gives the room back once nobody holds it.
func (l *reservation) release() {
	if l.holders.Add(-1) == 0 {
		l.memory.Release(l.weight)
	}
}

// late reports whether a review has waited for longer than it has left.
func (l *reservation) waitedTooLong(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < time.Since(l.arrived)
}

// enter waits until ctx ends for a place for a review of a weight, and before it,
// if that is large, for its part of judgedRoom. ok is false where there was none in
// time, or too many wait already.
func (g limiter) acquireSlot(ctx context.Context, weight int64) (ok bool) {
	part := largeReviewBytes(weight)
	if part > 0 && !g.largeReviews.TryAcquire(part) && !g.inQueue(func() bool { return g.largeReviews.Acquire(ctx, part) == nil }) {
		return false
	}
	if ok = g.waitForSlot(ctx); !ok {
		g.largeReviews.Release(part)
	}
	return ok
}

// judgedPart is what a review of a weight takes of judgedRoom.
func largeReviewBytes(weight int64) int64 {
	if weight <= largeReview {
		return 0
	}
	return min(weight, maxLargeReviewBytes)
}

// place waits for a place.
func (g limiter) waitForSlot(ctx context.Context) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	default:
	}
	return g.inQueue(func() bool {
		select {
		case g.slots <- struct{}{}:
			if ctx.Err() == nil {
				return true
			}
			<-g.slots // both were so: a judge that begins now is too late
		case <-ctx.Done():
		}
		return false
	})
}

// leave gives back what a review of a weight entered with.
func (g limiter) releaseSlot(weight int64) {
	<-g.slots
	g.largeReviews.Release(largeReviewBytes(weight))
}

// wait runs a wait as one of those in the queue, unless that is full.
func (g limiter) inQueue(until func() bool) bool {
	if g.waiting.Add(1) > g.maxQueue {
		g.waiting.Add(-1)
		return false
	}
	g.waitingGauge.Inc()
	defer func() {
		g.waiting.Add(-1)
		g.waitingGauge.Dec()
	}()
	return until()
}
