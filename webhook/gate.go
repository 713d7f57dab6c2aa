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
	DefaultRoom  = 64 << 20 // a review that waits takes twice its size
	placesPerCPU = 2
	lightest     = 32 << 10 // what a review takes beside its bytes: a connection, stacks
	unknown      = -1       // net/http's length of a body that comes in chunks

	// A review takes up to thirty times its size while it is evaluated: many small
	// maps. Those that are large share judgedRoom beside their places.
	large      = 256 << 10
	judgedRoom = 6 << 20
)

// gate bounds what the server does at once: the bytes of the reviews that it
// has taken in, how many of them are judged, and how many wait for either. So
// overload is answered and never piles up.
type gate struct {
	room    *semaphore.Weighted
	size    int64 // of the room, in bytes
	heavy   int64 // the most that one review takes of it
	places  chan struct{}
	judged  *semaphore.Weighted // bytes of the large reviews that are evaluated
	queue   int64
	waiting *atomic.Int64
	told    prometheus.Gauge // waiting, for the metrics
}

// newGate returns a gate of options that have their defaults.
func newGate(o Options) gate {
	return gate{
		room: semaphore.NewWeighted(o.MaxBytes), size: o.MaxBytes, heavy: o.BodyLimit,
		places: make(chan struct{}, o.MaxConcurrent), judged: semaphore.NewWeighted(judgedRoom), queue: int64(o.MaxQueue),
		waiting: new(atomic.Int64), told: o.Metrics.waiting,
	}
}

// bounded fills in the bounds that are not positive.
func (o *Options) bounded() {
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = placesPerCPU * runtime.GOMAXPROCS(0)
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = DefaultQueue
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultRoom
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
type load struct {
	room    *semaphore.Weighted
	weight  int64
	holders atomic.Int32
	came    time.Time
}

// take waits until ctx ends for the room of a review of a length in bytes. ok is
// false where there was none, or too many wait already: then there is nothing to
// drop.
func (g gate) take(ctx context.Context, length int64) (l *load, ok bool) {
	if length == unknown || length > g.heavy {
		length = g.heavy
	}
	l = &load{room: g.room, weight: min(max(length, lightest), g.size), came: time.Now()}
	l.hold()
	return l, g.room.TryAcquire(l.weight) || g.wait(func() bool { return g.room.Acquire(ctx, l.weight) == nil })
}

func (l *load) hold() { l.holders.Add(1) }

// drop gives the room back once nobody holds it.
func (l *load) drop() {
	if l.holders.Add(-1) == 0 {
		l.room.Release(l.weight)
	}
}

// late reports whether a review has waited for longer than it has left.
func (l *load) late(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < time.Since(l.came)
}

// enter waits until ctx ends for a place for a review of a weight, and before it,
// if that is large, for its part of judgedRoom. ok is false where there was none in
// time, or too many wait already.
func (g gate) enter(ctx context.Context, weight int64) (ok bool) {
	part := judgedPart(weight)
	if part > 0 && !g.judged.TryAcquire(part) && !g.wait(func() bool { return g.judged.Acquire(ctx, part) == nil }) {
		return false
	}
	if ok = g.place(ctx); !ok {
		g.judged.Release(part)
	}
	return ok
}

// judgedPart is what a review of a weight takes of judgedRoom.
func judgedPart(weight int64) int64 {
	if weight <= large {
		return 0
	}
	return min(weight, judgedRoom)
}

// place waits for a place.
func (g gate) place(ctx context.Context) bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
	}
	return g.wait(func() bool {
		select {
		case g.places <- struct{}{}:
			if ctx.Err() == nil {
				return true
			}
			<-g.places // both were so: a judge that begins now is too late
		case <-ctx.Done():
		}
		return false
	})
}

// leave gives back what a review of a weight entered with.
func (g gate) leave(weight int64) {
	<-g.places
	g.judged.Release(judgedPart(weight))
}

// wait runs a wait as one of those in the queue, unless that is full.
func (g gate) wait(until func() bool) bool {
	if g.waiting.Add(1) > g.queue {
		g.waiting.Add(-1)
		return false
	}
	g.told.Inc()
	defer func() {
		g.waiting.Add(-1)
		g.told.Dec()
	}()
	return until()
}
