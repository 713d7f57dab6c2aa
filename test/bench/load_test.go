package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"overrule.dev/overrule/test/worlds"
)

const (
	// eventsPerSecond is the rate of informer events during writes.
	eventsPerSecond = 500
	// aside is the distance of the objects of events from those that clients
	// write.
	aside = 5
)

// BenchmarkLoad has 64 clients write routes and policies in turn, each as fast as
// it gets responses, while informers put 500 events per second of other routes
// and policies into the store, and one event for each admitted write. The
// affected paths are audited, as in a server. One op is a round of writes by
// every client. -mutexprofile and -blockprofile show the contention.
func BenchmarkLoad(b *testing.B) {
	b.Run(fmt.Sprintf("clients=%d", mostClients), func(b *testing.B) {
		s := newComparison(b, worlds.Full, differentWrites, inTurn())
		clients := s.callers(mostClients)
		feed := newFeed(b, s.production, differentWrites)
		require.NoError(b, together(b.Context(), clients, turns, (*caller).callOverrule))
		for _, c := range clients { // connections are open now
			c.evaluated = nil
		}
		runtime.GC()
		go func() { _ = s.auditor.Start(b.Context()) }() // ends with the benchmark
		feed.start(b.Context())
		for b.Loop() {
			require.NoError(b, together(b.Context(), clients, turns, feed.writes()))
		}
		took := b.Elapsed()
		require.NoError(b, feed.stop())
		var evaluated []time.Duration
		for _, c := range clients {
			evaluated = append(evaluated, c.evaluated...)
		}
		reportQuantiles(b, "overrule", evaluated)
		reportQuantiles(b, "event", feed.took)
		b.ReportMetric(float64(len(evaluated))/took.Seconds(), "writes/s")
		b.ReportMetric(float64(len(feed.took))/feed.lasted.Seconds(), "other-events/s")
		b.ReportMetric(float64(len(feed.took)+len(evaluated))/feed.lasted.Seconds(), "events/s")
		b.ReportMetric(float64(feed.heap)/(1<<20), "heap-peak-MiB")
		b.ReportMetric(float64(feed.goroutines), "goroutines-peak")
	})
}

// inTurn returns writes of routes and of policies in turn.
func inTurn() func(worlds.Size, int) worlds.Write {
	n := 0
	return func(s worlds.Size, i int) worlds.Write {
		if n++; n%2 == 0 {
			return s.RoutePolicyWrite(i)
		}
		return s.RouteWrite(i)
	}
}

// feed is two informers: one delivers events at a constant rate, the other
// delivers the clients' writes.
type feed struct {
	*production
	roundTrips []*roundTrip
	admitted   chan watchEvent
	end        context.CancelFunc
	group      errgroup.Group

	took             []time.Duration // from the object's bytes to the store's next snapshot
	lasted           time.Duration
	heap, goroutines uint64 // maxima
}

func newFeed(tb testing.TB, p *production, differing int) *feed {
	tb.Helper()
	f := &feed{production: p, admitted: make(chan watchEvent, mostClients)}
	next := inTurn()
	for i := range differing {
		w := next(p.Size, i*p.Size.Routes/differing+aside)
		p.Put(tb, w.Before)
		f.roundTrips = append(f.roundTrips, &roundTrip{there: newReviewedWrite(tb, w), back: newReviewedWrite(tb, w.Back())})
	}
	return f
}

func (f *feed) start(ctx context.Context) {
	ctx, f.end = context.WithCancel(ctx)
	f.group.Go(func() error { return f.deliver(ctx) })
	f.group.Go(f.follow)
}

// follow delivers admitted writes, and continues after an error, since clients
// would block.
func (f *feed) follow() error {
	var failed error
	for s := range f.admitted {
		if err := f.event(s); err != nil {
			failed = fmt.Errorf("deliver what was written: %w", err)
		}
	}
	return failed
}

// stop ends the events, those of admitted writes once all are delivered, and
// returns the first error.
func (f *feed) stop() error {
	f.end()
	close(f.admitted)
	return f.group.Wait()
}

// writes returns write as an action of a caller.
func (f *feed) writes() func(*caller, context.Context, int) error {
	return func(c *caller, ctx context.Context, n int) error { return f.write(ctx, c, n) }
}

// write sends the next n writes of a client; admitted ones are stored, and
// observed a moment later.
func (f *feed) write(ctx context.Context, c *caller, n int) error {
	for range n {
		v := c.roundTrips[c.next%len(c.roundTrips)]
		t := v.next()
		took, err := c.overrule.call(ctx, t.review)
		if err != nil {
			return fmt.Errorf("call overrule: %w", err)
		}
		c.evaluated = append(c.evaluated, took)
		select {
		case f.admitted <- t.watchEvent:
		case <-ctx.Done():
			return ctx.Err()
		}
		v.changed = !v.changed
		c.next++
	}
	return nil
}

// deliver keeps the average rate: late events are delivered at once.
func (f *feed) deliver(ctx context.Context) error {
	start := time.Now()
	defer func() { f.lasted = time.Since(start) }()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / eventsPerSecond)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(due)):
		}
		if err := f.deliverOne(n); err != nil {
			return fmt.Errorf("deliver an event: %w", err)
		}
		if n%100 == 0 {
			f.sample()
		}
	}
}

func (f *feed) deliverOne(n int) error {
	v := f.roundTrips[n%len(f.roundTrips)]
	t := v.next()
	start := time.Now()
	if err := f.event(t.watchEvent); err != nil {
		return err
	}
	f.took = append(f.took, time.Since(start))
	v.changed = !v.changed
	return nil
}

// sample records the current memory and goroutines.
func (f *feed) sample() {
	now := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(now)
	f.heap = max(f.heap, now[0].Value.Uint64())
	f.goroutines = max(f.goroutines, now[1].Value.Uint64())
}
