//go:build e2e

package bench_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/worlds"
)

const (
	// alone is the number of writes of routes without a refresh, before and
	// after; one per beat, if the previous one was answered.
	alone = 300
	beat  = 50 * time.Millisecond
	// span is the time over which the highest rate is measured.
	span = 5 * time.Second
)

// BenchmarkRefresh is a write of a gateway's policy with that many routes, none
// of which has a policy yet, on a server with --refresh: 1,000 routes at the
// default rate, 10,000 at about the maximum rate of one client that waits for
// each response. One op lasts until every route has its annotation, which is
// correct for the policy. Meanwhile, writes of twenty of the routes are sent one
// after another, and as many of the same without a refresh, half of them before
// and half after.
func BenchmarkRefresh(b *testing.B) {
	for _, at := range []struct{ routes, rate int }{{1_000, 10}, {10_000, 100}} {
		b.Run(fmt.Sprintf("routes=%d", at.routes), func(b *testing.B) {
			c := storing(b, worlds.Size{Gateways: 1, Routes: at.routes}, withoutPolicies(at.routes))
			server.LetRefresh(b, c.Env, true)
			s, err := c.site.Boot(b.Context(), server.Options{Args: []string{"--refresh", fmt.Sprintf("--refresh-qps=%d", at.rate)}})
			require.NoError(b, err)
			stopAtEnd(b, s.Process)
			r := newRefreshing(b, c, s)
			for n := 0; b.Loop(); n++ {
				r.round(b, n)
			}
			r.report(b)
		})
	}
}

// withoutPolicies yields the namespaces, the gateway and the routes of a cluster.
func withoutPolicies(routes int) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for object := range worlds.Objects(worlds.Size{Gateways: 1, Routes: routes}) {
			if kind, _ := object["kind"].(string); !strings.HasSuffix(kind, "Policy") && !yield(object) {
				return
			}
		}
	}
}

// refreshing is a cluster with --refresh, and the measured times.
type refreshing struct {
	*cluster
	to      client.Client
	routes  dynamic.NamespaceableResourceInterface
	written metric
	pending metric
	sent    int // writes of routes

	took          time.Duration
	writes        float64
	highest       float64 // writes per second, over span
	alone, beside []time.Duration
	// The review times of the server itself: of all writes that it was called
	// for, those of the refresher included.
	reviewsAlone, reviewsBeside reviewTotals
}

// reviewTotals is the number of reviews that were answered, and their total time in
// seconds.
type reviewTotals struct{ reviews, seconds float64 }

// since adds the reviews since an earlier measurement.
func (j *reviewTotals) since(before, after reviewTotals) {
	j.reviews += after.reviews - before.reviews
	j.seconds += after.seconds - before.seconds
}

// mean is in milliseconds.
func (j reviewTotals) mean() float64 { return j.seconds / j.reviews * 1000 }

// reviewTimes returns the reviews answered so far.
func (r *refreshing) reviewTimes(tb testing.TB) reviewTotals {
	tb.Helper()
	var out reviewTotals
	for _, series := range (metric{address: r.written.address, name: "overrule_decision_duration_seconds"}).scrape(tb) {
		out.reviews += float64(series.GetHistogram().GetSampleCount())
		out.seconds += series.GetHistogram().GetSampleSum()
	}
	return out
}

// undisturbed sends writes without a refresh.
func (r *refreshing) undisturbed(tb testing.TB) {
	tb.Helper()
	before := r.reviewTimes(tb)
	r.send(tb.Context(), tb, alone/2, &r.alone)
	r.reviewsAlone.since(before, r.reviewTimes(tb))
}

func newRefreshing(tb testing.TB, c *cluster, s *server.Server) *refreshing {
	tb.Helper()
	to, err := c.client()
	require.NoError(tb, err)
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(tb, err)
	r := &refreshing{
		cluster: c, to: to, routes: client.Resource(httpRoutes),
		written: metric{s.Metrics, "controller_runtime_reconcile_total", "result"}, pending: metric{s.Metrics, "workqueue_depth", "name"},
	}
	require.Eventually(tb, func() bool { return r.pending.sum(tb) == 0 }, startLimit, time.Second, "it does not come to rest")
	return r
}

// round writes the n-th state of the gateway's policy, and waits until all routes
// have its annotation.
func (r *refreshing) round(b *testing.B, n int) {
	b.Helper()
	r.undisturbed(b)
	earlier := r.reviewTimes(b)
	before, start := r.attempts(b), time.Now()
	r.write(b, n)
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.send(ctx, b, math.MaxInt, &r.beside)
	}()
	r.took += r.settle(b, start, before)
	cancel()
	<-stopped
	r.reviewsBeside.since(earlier, r.reviewTimes(b))
	r.writes += r.attempts(b) - before
	r.requireAnnotated(b)
	r.undisturbed(b)
}

// write creates the gateway's policy, or gives it another value.
func (r *refreshing) write(tb testing.TB, n int) {
	tb.Helper()
	policy := worlds.Uniform{}.GatewayPolicy(n)
	if n == 0 {
		require.NoError(tb, create(tb.Context(), r.to, policy))
		return
	}
	require.NoError(tb, send(tb.Context(), r.to, worlds.Write{Before: worlds.Uniform{}.GatewayPolicy(n - 1), After: policy}))
}

// settle waits until every route was written and nothing is pending, and keeps
// the highest rate. It returns the time since start.
func (r *refreshing) settle(tb testing.TB, start time.Time, before float64) time.Duration {
	tb.Helper()
	type look struct {
		at     time.Time
		writes float64
	}
	looks := []look{{start, before}}
	for {
		require.Less(tb, time.Since(start), 20*time.Minute, "it does not come to an end")
		time.Sleep(500 * time.Millisecond)
		now := look{time.Now(), r.attempts(tb)}
		looks = append(looks, now)
		for now.at.Sub(looks[0].at) > span {
			r.highest = max(r.highest, (now.writes-looks[0].writes)/now.at.Sub(looks[0].at).Seconds())
			looks = looks[1:]
		}
		if now.writes-before >= float64(r.size.Routes-differing) && r.pending.sum(tb) == 0 {
			return time.Since(start)
		}
	}
}

// attempts returns the number of refresh writes that the server sent so far.
func (r *refreshing) attempts(tb testing.TB) float64 {
	tb.Helper()
	return r.written.read(tb)["requeue_after"]
}

// requireAnnotated fails unless every route has the annotation of the policy.
func (r *refreshing) requireAnnotated(tb testing.TB) {
	tb.Helper()
	policy := worlds.RefOf(worlds.Uniform{}.GatewayPolicy(0))
	list, err := r.routes.List(tb.Context(), metav1.ListOptions{})
	require.NoError(tb, err)
	require.Len(tb, list.Items, r.size.Routes)
	for i := range list.Items {
		o := &list.Items[i]
		require.Contains(tb, o.GetAnnotations()["overrule.dev/effective-policy"], policy.Namespace+"/"+policy.Name, o.GetName())
	}
	assert.Zero(tb, r.written.read(tb)["error"])
}

// send writes routes n times, or until ctx ends.
func (r *refreshing) send(ctx context.Context, tb testing.TB, n int, into *[]time.Duration) {
	tb.Helper()
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		<-beats.C
		*into = append(*into, r.one(tb))
	}
}

// one writes one of the routes, with another hostname each time, and returns the
// duration.
func (r *refreshing) one(tb testing.TB) time.Duration {
	tb.Helper()
	w := worlds.Write{Before: r.size.Route(r.sent % differing), After: r.size.Route(r.sent % differing)}
	worlds.Rename(worlds.Spec(w.After), fmt.Sprintf("n%d-", r.sent))
	r.sent++
	start := time.Now()
	assert.NoError(tb, send(tb.Context(), r.to, w))
	return time.Since(start)
}

func (r *refreshing) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.took.Seconds()/float64(b.N), "refresh-s")
	b.ReportMetric(r.writes/float64(b.N), "writes")
	b.ReportMetric(r.writes/r.took.Seconds(), "writes/s")
	b.ReportMetric(r.highest, "most-writes/s")
	b.ReportMetric(r.reviewsAlone.mean(), "alone-review-ms")
	b.ReportMetric(r.reviewsBeside.mean(), "beside-review-ms")
	for name, took := range map[string][]time.Duration{"alone": r.alone, "beside": r.beside} {
		slices.Sort(took)
		b.ReportMetric(milliseconds(quantile(took, 0.5)), name+"-p50-ms")
		b.ReportMetric(milliseconds(quantile(took, 0.99)), name+"-p99-ms")
	}
	b.Logf("%d writes of routes alone, %d beside", len(r.alone), len(r.beside))
}
