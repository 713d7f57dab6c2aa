package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"overrule.dev/overrule/test/worlds"
	"overrule.dev/overrule/webhook"
)

const (
	// mostClients is the maximum number of clients.
	mostClients = 64
	// turns is the number of calls of each webhook per client in a round with
	// several clients.
	turns = 20
	// differentWrites is the number of routes or policies that are written and
	// restored: no two writes in flight are of the same object.
	differentWrites = 512
)

// BenchmarkRouteWrite is an UPDATE review of a route of 3 KB in a cluster of
// the full size: half of the routes are on the busy gateway. See writes.
func BenchmarkRouteWrite(b *testing.B) { writes(b, worlds.Size.RouteWrite) }

// BenchmarkRoutePolicyWrite is an UPDATE review of a route's policy, likewise.
func BenchmarkRoutePolicyWrite(b *testing.B) { writes(b, worlds.Size.RoutePolicyWrite) }

// writes sends the same reviews to a webhook that does nothing and to Overrule,
// from 1, 16 and 64 clients. One client alternates between them, and one op is
// one call of each. Several clients call one and then the other for a round, so
// that only one server is busy at a time, and one op is a round of both. Each
// write that Overrule admits is stored: the next one is evaluated on a new
// snapshot.
func writes(b *testing.B, write func(worlds.Size, int) worlds.Write) {
	s := newComparison(b, worlds.Full, differentWrites, write)
	b.Logf("a review has %d bytes", len(s.roundTrips[0].there.review))
	for _, clients := range []int{1, 16, mostClients} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { s.measure(b, clients) })
	}
}

// newComparison has that many writes, of objects evenly distributed over a
// cluster.
func newComparison(tb testing.TB, size worlds.Size, differing int, write func(worlds.Size, int) worlds.Write) *comparison {
	tb.Helper()
	ctrl.SetLogger(logr.Discard())
	cluster := worlds.Mix(tb, size)
	p := newProduction(tb, cluster)
	s := &comparison{
		production: p,
		nothing:    serveTLS(tb, noopWebhook(), ""),
		overrule:   serveTLS(tb, p.hooks.Handler(), webhook.PathValidate+timeout),
	}
	for i := range differing {
		w := write(size, i*size.Routes/differing)
		cluster.Put(tb, w.Before)
		s.roundTrips = append(s.roundTrips, &roundTrip{there: newReviewedWrite(tb, w), back: newReviewedWrite(tb, w.Back())})
	}
	return s
}

// reviewedWrite is one write: its review, and its watch event.
type reviewedWrite struct {
	review []byte
	watchEvent
}

func newReviewedWrite(tb testing.TB, w worlds.Write) reviewedWrite {
	tb.Helper()
	review := w.Review(tb, "")
	data, err := json.Marshal(w.After)
	require.NoError(tb, err)
	return reviewedWrite{review, watchEvent{w.Ref(), w.UID(), data}}
}

// roundTrip is an object that is changed and restored in turn.
type roundTrip struct {
	there, back reviewedWrite
	changed     bool
}

// next returns the next write.
func (v *roundTrip) next() reviewedWrite {
	if v.changed {
		return v.back
	}
	return v.there
}

// comparison is the two servers and the writes.
type comparison struct {
	*production
	nothing, overrule webhookClient
	roundTrips        []*roundTrip
}

// caller writes its own objects, one after the other.
type caller struct {
	*comparison
	roundTrips         []*roundTrip
	next               int
	nothing, evaluated []time.Duration
}

// callers distributes the writes over n clients.
func (s *comparison) callers(n int) []*caller {
	out := make([]*caller, n)
	for i := range out {
		own := len(s.roundTrips) / n
		out[i] = &caller{comparison: s, roundTrips: s.roundTrips[i*own : (i+1)*own]}
	}
	return out
}

// round has each client call one webhook and then the other, in either order,
// since the second one benefits from warmer caches or suffers from colder ones.
func round(ctx context.Context, clients []*caller, swapped bool) error {
	n := turns
	if len(clients) == 1 {
		n = 1
	}
	first, second := (*caller).callNoop, (*caller).callOverrule
	if swapped {
		first, second = second, first
	}
	if err := together(ctx, clients, n, first); err != nil {
		return err
	}
	return together(ctx, clients, n, second)
}

func (s *comparison) measure(b *testing.B, n int) {
	clients := s.callers(n)
	require.NoError(b, together(b.Context(), clients, turns, (*caller).callNoop))
	require.NoError(b, together(b.Context(), clients, turns, (*caller).callOverrule))
	for _, c := range clients { // connections are open now, as an API server keeps them
		c.nothing, c.evaluated = nil, nil
	}
	runtime.GC() // garbage of the preparation is not measured
	for swapped := false; b.Loop(); swapped = !swapped {
		require.NoError(b, round(b.Context(), clients, swapped))
	}
	var nothing, evaluated []time.Duration
	for _, c := range clients {
		nothing, evaluated = append(nothing, c.nothing...), append(evaluated, c.evaluated...)
	}
	reportQuantiles(b, "nothing", nothing)
	reportQuantiles(b, "overrule", evaluated)
}

// together runs all clients concurrently, n times each, from the same moment.
func together(ctx context.Context, clients []*caller, n int, act func(*caller, context.Context, int) error) error {
	if len(clients) == 1 {
		return act(clients[0], ctx, n)
	}
	var group errgroup.Group
	start := make(chan struct{})
	for _, c := range clients {
		group.Go(func() error {
			<-start
			return act(c, ctx, n)
		})
	}
	close(start)
	return group.Wait()
}

// callNoop sends reviews of the next n writes to the webhook that does nothing.
func (c *caller) callNoop(ctx context.Context, n int) error {
	for i := range n {
		took, err := c.comparison.nothing.call(ctx, c.roundTrips[(c.next+i)%len(c.roundTrips)].next().review)
		if err != nil {
			return fmt.Errorf("call the webhook that does nothing: %w", err)
		}
		c.nothing = append(c.nothing, took)
	}
	return nil
}

// callOverrule sends those of the next n writes to Overrule, and stores the
// admitted ones.
func (c *caller) callOverrule(ctx context.Context, n int) error {
	for range n {
		v := c.roundTrips[c.next%len(c.roundTrips)]
		t := v.next()
		took, err := c.overrule.call(ctx, t.review)
		if err != nil {
			return fmt.Errorf("call overrule: %w", err)
		}
		c.evaluated = append(c.evaluated, took)
		if err := c.event(t.watchEvent); err != nil {
			return fmt.Errorf("store what was written: %w", err)
		}
		v.changed = !v.changed
		c.next++
	}
	return nil
}
