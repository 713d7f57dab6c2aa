package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"overrule.dev/overrule/test/fixture"
	"overrule.dev/overrule/webhook"
)

const (
	// mostClients is how many clients there are at most.
	mostClients = 64
	// turns is how many calls of each webhook a client makes in a round where
	// it is not alone.
	turns = 20
	// differentWrites is how many routes or policies are written, each there and back:
	// no two in flight are of the same.
	differentWrites = 512
)

// BenchmarkRouteWrite is an UPDATE review of a route of 3 KB in a cluster of
// the full size: half of the routes are on the busy gateway. See writes.
func BenchmarkRouteWrite(b *testing.B) { writes(b, fixture.Size.RouteWrite) }

// BenchmarkRoutePolicyWrite is an UPDATE review of a route's policy, likewise.
func BenchmarkRoutePolicyWrite(b *testing.B) { writes(b, fixture.Size.RoutePolicyWrite) }

// writes sends the same reviews to a webhook that does nothing and to Overrule,
// by 1, 16 and 64 clients. One client alternates call by call, and one op is one
// call of each. More clients call the one and then the other for a round, so
// that neither server is there while the other is busy, and one op is a round
// of both. Each write that Overrule admits is stored: the next one is judged by
// a new moment.
func writes(b *testing.B, write func(fixture.Size, int) fixture.Write) {
	ctrl.SetLogger(logr.Discard())
	cluster, err := fixture.New(fixture.Full)
	require.NoError(b, err)
	p := newProduction(b, cluster)
	s := &scene{
		production: p,
		nothing:    listen(b, doNothing(), ""),
		overrule:   listen(b, p.hooks.Handler(), webhook.PathValidate+timeout),
	}
	for i := range differentWrites {
		w := write(cluster.Size, i*cluster.Size.Routes/differentWrites)
		require.NoError(b, cluster.Put(w.Before))
		s.visits = append(s.visits, &visit{there: newTurn(b, w), back: newTurn(b, w.Back())})
	}
	b.Logf("a review has %d bytes", len(s.visits[0].there.review))
	for _, clients := range []int{1, 16, mostClients} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { s.measure(b, clients) })
	}
}

// turn is one write: the review of it, and what comes of it.
type turn struct {
	review []byte
	stored
}

func newTurn(b *testing.B, w fixture.Write) turn {
	b.Helper()
	review, err := w.Review()
	require.NoError(b, err)
	data, err := json.Marshal(w.After)
	require.NoError(b, err)
	return turn{review, stored{w.Ref(), w.UID(), data}}
}

// visit is an object that is written there and back.
type visit struct {
	there, back turn
	away        bool
}

// now returns the write that is next.
func (v *visit) now() turn {
	if v.away {
		return v.back
	}
	return v.there
}

// scene is the two servers and what is written.
type scene struct {
	*production
	nothing, overrule wire
	visits            []*visit
}

// caller writes objects of its own, one after the other.
type caller struct {
	*scene
	visits          []*visit
	next            int
	nothing, judged []time.Duration
}

func (s *scene) measure(b *testing.B, n int) {
	clients := make([]*caller, n)
	for i := range clients {
		own := len(s.visits) / n
		clients[i] = &caller{scene: s, visits: s.visits[i*own : (i+1)*own]}
	}
	runtime.GC() // nobody pays for what was made before
	for b.Loop() {
		if n == 1 {
			require.NoError(b, clients[0].idle(b.Context(), 1))
			require.NoError(b, clients[0].write(b.Context(), 1))
			continue
		}
		require.NoError(b, together(b.Context(), clients, (*caller).idle))
		require.NoError(b, together(b.Context(), clients, (*caller).write))
	}
	var nothing, judged []time.Duration
	for _, c := range clients {
		nothing, judged = append(nothing, c.nothing...), append(judged, c.judged...)
	}
	tell(b, "nothing", nothing)
	tell(b, "overrule", judged)
	for _, at := range quantiles[:2] {
		b.ReportMetric(float64(quantile(judged, at.q))/float64(quantile(nothing, at.q)), at.name+"-ratio")
	}
}

// together has all clients take their turns at once, from the same moment.
func together(ctx context.Context, clients []*caller, act func(*caller, context.Context, int) error) error {
	var group errgroup.Group
	var start sync.WaitGroup
	start.Add(1)
	for _, c := range clients {
		group.Go(func() error {
			start.Wait()
			return act(c, ctx, turns)
		})
	}
	start.Done()
	return group.Wait()
}

// idle sends reviews of the next n writes to the webhook that does nothing.
func (c *caller) idle(ctx context.Context, n int) error {
	for i := range n {
		took, err := c.scene.nothing.call(ctx, c.visits[(c.next+i)%len(c.visits)].now().review)
		if err != nil {
			return fmt.Errorf("call the webhook that does nothing: %w", err)
		}
		c.nothing = append(c.nothing, took)
	}
	return nil
}

// write sends those of the next n writes to Overrule, and stores what it admits.
func (c *caller) write(ctx context.Context, n int) error {
	for range n {
		v := c.visits[c.next%len(c.visits)]
		t := v.now()
		took, err := c.overrule.call(ctx, t.review)
		if err != nil {
			return fmt.Errorf("call overrule: %w", err)
		}
		c.judged = append(c.judged, took)
		if err := c.event(t.stored); err != nil {
			return fmt.Errorf("store what was written: %w", err)
		}
		v.away = !v.away
		c.next++
	}
	return nil
}
