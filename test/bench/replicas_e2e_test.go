//go:build e2e

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/worlds"
)

const (
	// roundsOfReplicas is the number of rounds in which the variants take turns. In
	// each, all clients together send writesPerRound writes, or aloneInRound if there
	// is one client.
	roundsOfReplicas, writesPerRound, aloneInRound = 12, 160, 40
	// burstWrites is the number of writes of a burst, and burstClients that of the
	// writes at the same time.
	burstWrites, burstClients = 5_000, 16
	// handoverTimes is the number of handovers of each kind, and handoverWriters that of
	// the clients that write during them.
	handoverTimes, handoverWriters = 5, 4
	// settled is the time for which they write before and after each.
	settled = 500 * time.Millisecond
	// coordinated is a value of --coordination.
	coordinated = "leader"
)

// BenchmarkReplicas is what several replicas cost, with real servers and a real
// API server that stores 1,000 routes. Its webhooks call the replicas through a
// proxy, which measures each call of /validate.
//
//   - clients=N: a write of a route whose review goes to the leader, to a follower
//     that forwards it, or to a replica with --coordination=none. They take turns,
//     and all three run all the time. -p50 and -p99 are of the review, -writes/s of
//     whole writes.
//   - burst: 5,000 writes by 16 clients, with two replicas that are called in turn.
//     CPU time of each replica, with --coordination=leader and then none.
//   - handover=KIND: a stop, or kill -9, of the leader while four clients write with
//     retries, as kubectl does. Reviews go to the other replica. -s is the time without
//     a leader, refused the reviews that were answered with 429 or 503, and lost the
//     writes that failed after all retries.
//
// One op is all of these.
func BenchmarkReplicas(b *testing.B) {
	r := newReplicas(b, 1_000)
	leader, follower := r.pair(b, coordinated)
	to := map[string]*server.Server{"leader": leader, "forwarded": follower, none: r.boot(b, none)}
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			for b.Loop() {
				r.compare(b, to, clients)
			}
			b.ReportMetric(0, "ns/op") // an op is many writes
		})
	}
	for _, s := range []*server.Server{to[none], follower, leader} {
		r.stop(b, s)
	}
	b.Run("burst", func(b *testing.B) {
		for b.Loop() {
			r.burst(b, coordinated, burstWrites)
			r.burst(b, none, burstWrites)
		}
		b.ReportMetric(0, "ns/op")
	})
	for kind, end := range map[string]func(testing.TB, *server.Server){"graceful": r.stop, "crash": r.kill} {
		b.Run("handover="+kind, func(b *testing.B) {
			for b.Loop() {
				r.handover(b, kind, handoverTimes, end).report(b)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// replicas is a cluster whose API server calls replicas through a proxy.
type replicas struct {
	*cluster
	proxy *reviewProxy
	to    client.Client
	// routes and mixed are the numbers of writes of each sort so far.
	routes, mixed atomic.Int64
}

func newReplicas(tb testing.TB, routes int) *replicas {
	tb.Helper()
	r := &replicas{cluster: newCluster(tb, routes), proxy: newReviewProxy()}
	var err error
	r.to, err = r.client()
	require.NoError(tb, err)
	r.serveHooks(tb, r.proxy, registration{name: "replicas", except: []string{benchServer, server.Namespace}})
	return r
}

// boot starts a replica. The caller stops it; the end of the test does, too.
func (r *replicas) boot(tb testing.TB, coordination string) *server.Server {
	tb.Helper()
	args := []string{"--manage-webhooks=false", "--coordination=" + coordination}
	s, err := r.site.Boot(tb.Context(), server.Options{Unprobed: true, Args: args})
	require.NoError(tb, err)
	stopAtEnd(tb, s.Process)
	return s
}

// pair starts two replicas, of which the first one leads if they are coordinated,
// and waits until the API server calls them.
func (r *replicas) pair(tb testing.TB, coordination string) (first, second *server.Server) {
	tb.Helper()
	first = r.boot(tb, coordination)
	if coordination == coordinated {
		awaitLeader(tb, first)
	}
	second = r.boot(tb, coordination)
	r.proxy.use(first, second)
	require.EventuallyWithT(tb, func(t *assert.CollectT) {
		r.proxy.take()
		require.NoError(t, r.writeRoute(tb.Context()))
		assert.NotEmpty(t, r.proxy.take().took)
	}, time.Minute, 10*time.Millisecond, "the API server does not call the replicas")
	return first, second
}

func awaitLeader(tb testing.TB, s *server.Server) {
	tb.Helper()
	require.Eventually(tb, func() bool { return metric(tb, s, "overrule_leader") == 1 }, time.Minute, 10*time.Millisecond, "it does not lead")
}

// stop stops a replica; without idle connections to it, of which it would tell the
// proxy.
func (r *replicas) stop(tb testing.TB, s *server.Server) {
	tb.Helper()
	r.proxy.client.CloseIdleConnections()
	require.NoError(tb, s.Stop())
}

func (r *replicas) kill(tb testing.TB, s *server.Server) {
	tb.Helper()
	require.NoError(tb, s.Signal(syscall.SIGKILL))
	<-s.Done()
}

// writeRoute writes the next route, with another first hostname each time.
func (r *replicas) writeRoute(ctx context.Context) error {
	n := int(r.routes.Add(1))
	w := r.renamed(n % r.size.Routes)
	worlds.Rename(worlds.Spec(w.After), fmt.Sprintf("n%d-", n))
	return send(ctx, r.to, w)
}

// writeMixed writes the next object of a mix of routes and policies.
func (r *replicas) writeMixed(ctx context.Context) error {
	return r.rewrite(ctx, r.to, int(r.mixed.Add(1)))
}

// concurrently writes n times, with that many clients.
func concurrently(ctx context.Context, clients, n int, write func(context.Context) error) error {
	var group errgroup.Group
	group.SetLimit(clients)
	for range n {
		group.Go(func() error { return write(ctx) })
	}
	return group.Wait()
}

// compare measures writes that the leader evaluates, that a follower forwards, and
// that a replica without coordination evaluates.
func (r *replicas) compare(b *testing.B, to map[string]*server.Server, clients int) {
	b.Helper()
	n := writesPerRound
	if clients == 1 {
		n = aloneInRound
	}
	reviews, took := map[string][]time.Duration{}, map[string]time.Duration{}
	for range roundsOfReplicas {
		for name, s := range to { // in any order
			r.proxy.use(s)
			r.proxy.take()
			start := time.Now()
			require.NoError(b, concurrently(b.Context(), clients, n, r.writeRoute))
			took[name] += time.Since(start)
			reviews[name] = append(reviews[name], r.proxy.take().took...)
		}
	}
	for name, of := range reviews {
		b.ReportMetric(milliseconds(quantile(of, 0.5)), name+"-p50-ms")
		b.ReportMetric(milliseconds(quantile(of, 0.99)), name+"-p99-ms")
		b.ReportMetric(float64(n*roundsOfReplicas)/took[name].Seconds(), name+"-writes/s")
	}
}

// burst measures two replicas that are called in turn.
func (r *replicas) burst(b *testing.B, coordination string, writes int) {
	b.Helper()
	first, second := r.pair(b, coordination)
	before, start := [...]process.Usage{usage(b, first), usage(b, second)}, time.Now()
	require.NoError(b, concurrently(b.Context(), burstClients, writes, r.writeMixed))
	took := time.Since(start)
	b.ReportMetric((usage(b, first).CPU - before[0].CPU).Seconds(), coordination+"-first-CPU-s")
	b.ReportMetric((usage(b, second).CPU - before[1].CPU).Seconds(), coordination+"-second-CPU-s")
	b.ReportMetric(float64(writes)/took.Seconds(), coordination+"-writes/s")
	r.stop(b, second)
	r.stop(b, first)
}

// handovers are the results of handovers of one kind.
type handovers struct {
	without []time.Duration // a leader
	refused []int           // reviews, in each
	failed  int             // reviews without a response
	slowest time.Duration   // write
	writes  int
	lost    []error
}

// handover forces the leader to hand over n times while clients write.
func (r *replicas) handover(tb testing.TB, kind string, n int, end func(testing.TB, *server.Server)) handovers {
	tb.Helper()
	var out handovers
	leader, follower := r.pair(tb, coordinated)
	for range n {
		r.proxy.use(follower)
		stop := r.keepWriting(tb.Context(), &out)
		time.Sleep(settled)
		r.proxy.take()
		end(tb, leader)
		awaitLeader(tb, follower)
		time.Sleep(settled)
		stop()
		calls := r.proxy.take()
		out.refused = append(out.refused, calls.tooMany+calls.unavailable)
		out.failed += calls.failed
		out.without = append(out.without, withoutLeader(tb, follower, kind))
		leader, follower = follower, r.boot(tb, coordinated)
	}
	r.stop(tb, follower)
	r.stop(tb, leader)
	return out
}

// withoutLeader returns the time without a leader that a replica has reported when it
// began to lead.
func withoutLeader(tb testing.TB, s *server.Server, kind string) time.Duration {
	tb.Helper()
	label := `kind="` + kind + `"`
	require.InDelta(tb, 1, metric(tb, s, "overrule_handover_seconds_count", label), 0, kind)
	return time.Duration(metric(tb, s, "overrule_handover_seconds_sum", label) * float64(time.Second))
}

// keepWriting writes with several clients until it is stopped. A client retries as
// client-go does.
func (r *replicas) keepWriting(ctx context.Context, into *handovers) (stop func()) {
	end := make(chan struct{})
	var mu sync.Mutex
	var group sync.WaitGroup
	one := func() {
		start := time.Now()
		err := r.writeRoute(ctx)
		mu.Lock()
		defer mu.Unlock()
		into.writes++
		into.slowest = max(into.slowest, time.Since(start))
		if err != nil {
			into.lost = append(into.lost, err)
		}
	}
	for range handoverWriters {
		group.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					one()
				}
			}
		})
	}
	return func() {
		close(end)
		group.Wait()
	}
}

func (h handovers) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(quantile(h.without, 0.5).Seconds(), "p50-s")
	b.ReportMetric(quantile(h.without, 1).Seconds(), "max-s")
	b.ReportMetric(float64(slices.Min(h.refused)), "refused-min")
	b.ReportMetric(float64(slices.Max(h.refused)), "refused-max")
	b.ReportMetric(float64(h.failed), "failed")
	b.ReportMetric(h.slowest.Seconds(), "slowest-write-s")
	b.ReportMetric(float64(h.writes), "writes")
	b.ReportMetric(float64(len(h.lost)), "lost")
	b.Logf("without a leader: %v; refused: %v; %v", h.without, h.refused, errors.Join(h.lost...))
}
