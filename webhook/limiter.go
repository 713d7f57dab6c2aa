package webhook

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// Defaults of Options, and what a review takes.
const (
	DefaultQueue    = 1024
	DefaultMaxBytes = 64 << 20 // a waiting review takes twice its size
	slotsPerCPU     = 2
	minWeight       = 32 << 10 // what a review takes besides its bytes: a connection, stacks
	unknownLength   = -1       // net/http's length of a chunked body

	// A review takes up to thirty times its size while it is evaluated: many small
	// maps. Large reviews share maxLargeReviewBytes, besides their slots.
	largeReview         = 256 << 10
	maxLargeReviewBytes = 6 << 20
)

// limiter limits the concurrent work of the server: the bytes of the reviews in memory,
// the number of evaluations, and the number of reviews that wait for either. Overload
// gets a response, and never accumulates. What is not stored leaves it for a lane once it
// was read.
type limiter struct {
	memory       *semaphore.Weighted
	memorySize   int64 // bytes
	maxReview    int64 // the most that one review takes of memory
	slots        chan struct{}
	largeReviews *semaphore.Weighted // bytes of the large reviews that are evaluated
	maxQueue     int64
	waiting      *atomic.Int64
	waitingGauge prometheus.Gauge // waiting, as a metric
}

// newLimiter returns a limiter for options with defaults set.
func newLimiter(o Options) limiter {
	return limiter{
		memory: semaphore.NewWeighted(o.MaxBytes), memorySize: o.MaxBytes, maxReview: o.BodyLimit,
		slots: make(chan struct{}, o.MaxConcurrent), largeReviews: semaphore.NewWeighted(maxLargeReviewBytes), maxQueue: int64(o.MaxQueue),
		waiting: new(atomic.Int64), waitingGauge: o.Metrics.waiting,
	}
}

// slots are the evaluations that may run at once.
type slots interface {
	// acquireSlot waits until ctx ends for a slot for a review of a weight. It returns
	// false if it did not get one.
	acquireSlot(ctx context.Context, weight int64) (ok bool)
	// releaseSlot frees what acquireSlot acquired for a review of a weight.
	releaseSlot(weight int64)
}

// setLimitDefaults sets the limits that are not positive.
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

// reservation is the memory reserved for a review. The handler holds it, and so does
// the evaluation: one that exceeds its deadline still uses the review.
type reservation struct {
	free    func() // frees the memory
	weight  int64
	holders atomic.Int32
	arrived time.Time
}

// reserve waits until ctx ends for the memory of a review of a length in bytes. ok is
// false if there is none, or too many reviews wait already: then there is nothing to
// release.
func (l limiter) reserve(ctx context.Context, length int64) (r *reservation, ok bool) {
	if length == unknownLength || length > l.maxReview {
		length = l.maxReview
	}
	weight := min(max(length, minWeight), l.memorySize)
	r = &reservation{free: func() { l.memory.Release(weight) }, weight: weight, arrived: time.Now()}
	r.retain()
	return r, l.memory.TryAcquire(r.weight) || l.inQueue(func() bool { return l.memory.Acquire(ctx, r.weight) == nil })
}

func (r *reservation) retain() { r.holders.Add(1) }

// release frees the memory when the last holder releases it.
func (r *reservation) release() {
	if r.holders.Add(-1) == 0 {
		r.free()
	}
}

// moveTo frees the memory, and has free called in its place later. The caller is the only
// holder.
func (r *reservation) moveTo(free func()) {
	r.free()
	r.free = free
}

// waitedTooLong reports whether a review has waited for longer than the time that it
// has left.
func (r *reservation) waitedTooLong(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < time.Since(r.arrived)
}

// acquireSlot implements slots. Before it waits for a slot, a large review waits for its
// share of maxLargeReviewBytes. ok is also false if too many reviews wait already.
func (l limiter) acquireSlot(ctx context.Context, weight int64) (ok bool) {
	share := largeReviewBytes(weight)
	if share > 0 && !l.largeReviews.TryAcquire(share) && !l.inQueue(func() bool { return l.largeReviews.Acquire(ctx, share) == nil }) {
		return false
	}
	if ok = l.waitForSlot(ctx); !ok {
		l.largeReviews.Release(share)
	}
	return ok
}

// largeReviewBytes is the share of maxLargeReviewBytes of a review of a weight.
func largeReviewBytes(weight int64) int64 {
	if weight <= largeReview {
		return 0
	}
	return min(weight, maxLargeReviewBytes)
}

// waitForSlot waits until ctx ends for a slot.
func (l limiter) waitForSlot(ctx context.Context) bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	return l.inQueue(func() bool {
		select {
		case l.slots <- struct{}{}:
			if ctx.Err() == nil {
				return true
			}
			<-l.slots // both cases were ready: an evaluation that starts now is too late
		case <-ctx.Done():
		}
		return false
	})
}

// releaseSlot implements slots.
func (l limiter) releaseSlot(weight int64) {
	<-l.slots
	l.largeReviews.Release(largeReviewBytes(weight))
}

// inQueue calls wait as one of the reviews in the queue, unless the queue is full.
func (l limiter) inQueue(wait func() bool) bool {
	if l.waiting.Add(1) > l.maxQueue {
		l.waiting.Add(-1)
		return false
	}
	l.waitingGauge.Inc()
	defer func() {
		l.waiting.Add(-1)
		l.waitingGauge.Dec()
	}()
	return wait()
}
