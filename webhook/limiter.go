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
	slots        *semaphore.Weighted
	largeReviews *semaphore.Weighted // bytes of the large reviews that are evaluated
	maxQueue     int64
	waiting      *atomic.Int64
	waitingGauge prometheus.Gauge // waiting, as a metric
}

// newLimiter returns a limiter for options with defaults set.
func newLimiter(o Options) limiter {
	return limiter{
		memory: semaphore.NewWeighted(o.MaxBytes), memorySize: o.MaxBytes, maxReview: o.BodyLimit,
		slots: semaphore.NewWeighted(int64(o.MaxConcurrent)), largeReviews: semaphore.NewWeighted(maxLargeReviewBytes), maxQueue: int64(o.MaxQueue),
		waiting: new(atomic.Int64), waitingGauge: o.Metrics.waiting,
	}
}

// slots are the evaluations that may run at once.
type slots interface {
	// needs returns what the evaluation of a review of a weight needs.
	needs(weight int64) []need
	// await acquires one need, and waits for it until ctx ends. It returns false if it did
	// not get it.
	await(ctx context.Context, n need) bool
}

// need is a part of a semaphore.
type need struct {
	of *semaphore.Weighted
	n  int64
}

// acquire waits until ctx ends for a slot for a review of a weight. It returns false if it
// did not get one.
func acquire(ctx context.Context, s slots, weight int64) (ok bool) {
	needs := s.needs(weight)
	for i, n := range needs {
		if !s.await(ctx, n) {
			release(needs[:i])
			return false
		}
	}
	return true
}

func release(needs []need) {
	for _, n := range needs {
		n.of.Release(n.n)
	}
}

// setLimitDefaults sets the limits that are not positive.
func (o *Options) setLimitDefaults() {
	setDefault(&o.MaxConcurrent, slotsPerCPU*runtime.GOMAXPROCS(0))
	setDefault(&o.MaxQueue, DefaultQueue)
	setDefault(&o.MaxBytes, DefaultMaxBytes)
	setDefault(&o.BodyLimit, DefaultBodyLimit)
	setDefault(&o.MaxObject, DefaultMaxObject)
}

func setDefault[T int | int64](limit *T, value T) {
	if *limit <= 0 {
		*limit = value
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
	return r, l.await(ctx, need{l.memory, weight})
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

// needs implements slots. Before it waits for a slot, a large review waits for its share of
// maxLargeReviewBytes.
func (l limiter) needs(weight int64) []need {
	return append(largeNeeds(l.largeReviews, weight), need{l.slots, 1})
}

// largeNeeds returns the share of maxLargeReviewBytes of a review of a weight, nil for a
// small one.
func largeNeeds(of *semaphore.Weighted, weight int64) []need {
	if weight <= largeReview {
		return nil
	}
	return []need{{of, min(weight, maxLargeReviewBytes)}}
}

// await implements slots. What has to wait is one of the reviews in the queue, unless the
// queue is full.
func (l limiter) await(ctx context.Context, n need) bool {
	if n.of.TryAcquire(n.n) {
		return true
	}
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > l.maxQueue {
		return false
	}
	l.waitingGauge.Inc()
	defer l.waitingGauge.Dec()
	return n.of.Acquire(ctx, n.n) == nil
}
