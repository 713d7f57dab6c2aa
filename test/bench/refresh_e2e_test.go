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

	"overrule.dev/overrule/test/fixture"
	"overrule.dev/overrule/test/server"
)

const (
	// alone is how many writes of routes are sent while nothing is refreshed, before
	// and after; each beat one, if the one before was answered.
	alone = 300
	beat  = 50 * time.Millisecond
	// span is what the highest rate is told of.
	span = 5 * time.Second
)

// BenchmarkRefresh is a write of a gateway's policy above so many routes, none of
// which has a policy yet, by a server that keeps marks fresh: those of 1,000 at the
// usual rate, those of 10,000 at what one writer, who waits for each answer, hardly
// comes to. One op lasts until every route has its annotation, the one that the policy
// makes true. Beside it, writes of twenty of the routes are sent one after another, and
// as many of the same when nothing is refreshed, half of them before and half after.
func BenchmarkRefresh(b *testing.B) {
	for _, at := range []struct{ routes, rate int }{{1_000, 10}, {10_000, 100}} {
		b.Run(fmt.Sprintf("routes=%d", at.routes), func(b *testing.B) {
			c := storing(b, fixture.Size{Gateways: 1, Routes: at.routes}, withoutPolicies(at.routes))
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
		for object := range fixture.Objects(fixture.Size{Gateways: 1, Routes: routes}) {
			if kind, _ := object["kind"].(string); !strings.HasSuffix(kind, "Policy") && !yield(object) {
				return
			}
		}
	}
}

// refreshing is a cluster whose annotations are kept fresh, and what that took.
type refreshing struct {
	*cluster
	to      client.Client
	routes  dynamic.NamespaceableResourceInterface
	written metric
	pending metric
	sent    int // writes of routes

	took          time.Duration
	writes        float64
	highest       float64 // writes a second, over span
	alone, beside []time.Duration
	// what the server itself took to judge, in all: of all writes that it was asked
	// about, those of the refresher included.
	reviewsAlone, reviewsBeside withGuard
}

// judged is how many reviews were answered, and how long that took in all.
type withGuard struct{ reviews, seconds float64 }

// since adds what was answered since an earlier look.
func (j *withGuard) since(before, after withGuard) {
	j.reviews += after.reviews - before.reviews
	j.seconds += after.seconds - before.seconds
}

// mean is in milliseconds.
func (j withGuard) mean() float64 { return j.seconds / j.reviews * 1000 }

// reviewTimes is what was answered so far.
func (r *refreshing) reviewTimes(tb testing.TB) withGuard {
	tb.Helper()
	var out withGuard
	for _, door := range (metric{address: r.written.address, name: "overrule_decision_duration_seconds"}).scrape(tb) {
		out.reviews += float64(door.GetHistogram().GetSampleCount())
		out.seconds += door.GetHistogram().GetSampleSum()
	}
	return out
}

// undisturbed sends writes while nothing is refreshed.
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
		written: metric{s.Metrics, "overrule_refresh_writes_total", "result"}, pending: metric{s.Metrics, "overrule_refresh_pending", ""},
	}
	require.Eventually(tb, func() bool { return r.pending.value(tb) == 0 }, startLimit, time.Second, "it does not come to rest")
	return r
}

// round writes the n-th state of the gateway's policy, and waits until all routes
// tell of it.
func (r *refreshing) round(b *testing.B, n int) {
	b.Helper()
	r.undisturbed(b)
	judged := r.reviewTimes(b)
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
	r.reviewsBeside.since(judged, r.reviewTimes(b))
	r.writes += r.attempts(b) - before
	r.requireAnnotated(b)
	r.undisturbed(b)
}

// write creates the gateway's policy, or gives it another value.
func (r *refreshing) write(tb testing.TB, n int) {
	tb.Helper()
	policy := fixture.Uniform{}.GatewayPolicy(n)
	if n == 0 {
		require.NoError(tb, create(tb.Context(), r.to, policy))
		return
	}
	require.NoError(tb, send(tb.Context(), r.to, fixture.Write{Before: fixture.Uniform{}.GatewayPolicy(n - 1), After: policy}))
}

// settle waits until as much was written as there are routes and nothing is left, and
// keeps the highest rate. It returns how long that took from the start.
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
		if now.writes-before >= float64(r.size.Routes-differing) && r.pending.value(tb) == 0 {
			return time.Since(start)
		}
	}
}

// attempts are the writes that the server sent to refresh so far.
func (r *refreshing) attempts(tb testing.TB) float64 {
	tb.Helper()
	sum := 0.0
	for _, n := range r.written.read(tb) {
		sum += n
	}
	return sum
}

// requireAnnotated fails unless every route tells of the policy.
func (r *refreshing) requireAnnotated(tb testing.TB) {
	tb.Helper()
	policy := fixture.RefOf(fixture.Uniform{}.GatewayPolicy(0))
	list, err := r.routes.List(tb.Context(), metav1.ListOptions{})
	require.NoError(tb, err)
	require.Len(tb, list.Items, r.size.Routes)
	for i := range list.Items {
		o := &list.Items[i]
		require.Contains(tb, o.GetAnnotations()["overrule.dev/effective-policy"], policy.Namespace+"/"+policy.Name, o.GetName())
	}
	for result, n := range r.written.read(tb) {
		if result != "written" {
			assert.Zero(tb, n, result)
		}
	}
}

// send writes routes so many times, or until ctx ends.
func (r *refreshing) send(ctx context.Context, tb testing.TB, n int, into *[]time.Duration) {
	tb.Helper()
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		<-beats.C
		*into = append(*into, r.one(tb))
	}
}

// one writes one of the routes, another hostname each time, and returns how long that
// took.
func (r *refreshing) one(tb testing.TB) time.Duration {
	tb.Helper()
	w := fixture.Write{Before: r.size.Route(r.sent % differing), After: r.size.Route(r.sent % differing)}
	hostnames := w.After["spec"].(map[string]any)["hostnames"].([]any)
	hostnames[0] = fmt.Sprintf("n%d-%s", r.sent, hostnames[0])
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
