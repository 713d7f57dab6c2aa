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
	slots

	memory     *semaphore.Weighted
	memorySize int64 // bytes
	maxReview  int64 // the most that one review takes of memory
}

// newLimiter returns a limiter for options with defaults set.
func newLimiter(o Options) limiter {
	return limiter{
		slots:  newSlots(o.MaxConcurrent, int64(o.MaxQueue), o.Metrics.waiting),
		memory: semaphore.NewWeighted(o.MaxBytes), memorySize: o.MaxBytes, maxReview: o.BodyLimit,
	}
}

// slots are the evaluations that may run at once.
type slots struct {
	*queue

	turn    *semaphore.Weighted // of the reviews of a namespace; nil for writes
	large   *semaphore.Weighted // bytes of the large reviews that are evaluated
	running *semaphore.Weighted
}

func newSlots(n int, maxQueue int64, waiting prometheus.Gauge) slots {
	return slots{
		queue: &queue{maxQueue: maxQueue, gauge: waiting},
		large: semaphore.NewWeighted(maxLargeReviewBytes), running: semaphore.NewWeighted(int64(n)),
	}
}

// need is a part of a semaphore.
type need struct {
	of *semaphore.Weighted
	n  int64
}

// needs returns what the evaluation of a review of a weight needs. Before it waits for a
// slot, a large review waits for its share of maxLargeReviewBytes.
func (s slots) needs(weight int64) []need {
	var out []need
	if s.turn != nil {
		out = append(out, need{s.turn, 1})
	}
	if weight > largeReview {
		out = append(out, need{s.large, min(weight, maxLargeReviewBytes)})
	}
	return append(out, need{s.running, 1})
}

// acquire waits until ctx ends for a slot for a review of a weight. It returns false if it
// did not get one.
func (s slots) acquire(ctx context.Context, weight int64) (ok bool) {
	needs := s.needs(weight)
	for i, n := range needs {
		if !s.await(ctx, n) {
			release(needs[:i])
			return false
		}
	}
	return true
}

// release frees the slot of a review of a weight.
func (s slots) release(weight int64) { release(s.needs(weight)) }

func release(needs []need) {
	for _, n := range needs {
		n.of.Release(n.n)
	}
}

// queue is the reviews that wait.
type queue struct {
	maxQueue int64
	waiting  atomic.Int64
	gauge    prometheus.Gauge // waiting, as a metric; of all queues
}

// await waits until ctx ends for what a review needs. It returns false if it did not get
// it, or if the queue is full.
func (q *queue) await(ctx context.Context, n need) bool {
	if n.of.TryAcquire(n.n) {
		return true
	}
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > q.maxQueue {
		return false
	}
	q.gauge.Inc()
	defer q.gauge.Dec()
	return n.of.Acquire(ctx, n.n) == nil
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
	end, _ := ctx.Deadline()
	return time.Until(end) < time.Since(r.arrived)
}
