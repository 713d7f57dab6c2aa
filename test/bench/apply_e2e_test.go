//go:build e2e

package bench_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/test/worlds"
)

const (
	// differing is the number of routes per variant that requests take turns
	// with, all on the gateway with the most routes. kubectl has one more.
	differing = 20
	// fieldManager is the field manager of all writes except kubectl's.
	fieldManager = "bench"
)

var httpRoutes = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}

// BenchmarkApply is the time of a write of a route through a real API server that
// stores 10,000 routes, in three variants: without a webhook, with a webhook that
// does nothing, and with Overrule. Both servers are called twice per write, by a
// mutating and a validating webhook. The variants take turns, write by write, in
// a random order, so that delayed work of a write (events to Overrule, garbage
// collection) affects all of them equally. Each write changes the route's first
// hostname; none is a no-op.
//
// One op is 30 rounds of kubectl apply, as users experience it (kubectl-…: most
// of that is kubectl itself), and 2,000 rounds of the request of kubectl apply
// --server-side, over one connection. …-added is the median of the additional
// time of a variant, compared with the one without a webhook in the same round.
func BenchmarkApply(b *testing.B) {
	a := newApplying(b, newCluster(b, worlds.Full.Routes))
	requests, kubectls := samples{}, samples{}
	for b.Loop() {
		a.rounds(b, 30, a.kubectl, kubectls)
		a.rounds(b, 2000, a.request, requests)
	}
	requests.report(b, "")
	kubectls.report(b, "kubectl-")
	b.ReportMetric(0, "ns/op") // an op is many writes
}

// applying is a cluster whose routes are written in three variants.
type applying struct {
	*cluster
	variants
	routes dynamic.NamespaceableResourceInterface
	random *rand.Rand
	n      int // rounds so far
}

// newApplying creates the same routes, each with its policies, for each variant,
// before any server is called: all later writes are updates.
func newApplying(tb testing.TB, c *cluster) *applying {
	tb.Helper()
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(tb, err)
	a := &applying{cluster: c, variants: newVariants(), routes: client.Resource(httpRoutes), random: rand.New(rand.NewPCG(1, 2))}
	for _, w := range a.all() {
		c.namespace(tb, w.namespace)
	}
	require.NoError(tb, c.fill(tb.Context(), a.policies))
	a.rounds(tb, differing, a.request, samples{})
	a.rounds(tb, 1, a.kubectl, samples{})
	c.serve(tb, a.variants)
	for _, w := range a.all() {
		a.await(tb, w)
	}
	return a
}

// policies yields the policies of the routes that are written.
func (a *applying) policies(yield func(map[string]any) bool) {
	for _, w := range a.all() {
		for i := range differing + 1 {
			policy := a.size.RoutePolicy(i)
			policy["metadata"].(map[string]any)["namespace"] = w.namespace
			if !yield(policy) {
				return
			}
		}
	}
}

// await waits until the API server calls both webhooks of a variant: it learns of
// them, and of their Service, by a watch.
func (a *applying) await(tb testing.TB, w *variant) {
	tb.Helper()
	probe, o := a.route(tb, w, 0), metav1.PatchOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}}
	require.EventuallyWithT(tb, func(t *assert.CollectT) {
		before := w.reviews(tb)
		_, err := a.routes.Namespace(w.namespace).Patch(tb.Context(), probe.GetName(), types.ApplyYAMLPatchType, written(tb, probe), o)
		require.NoError(t, err)
		assert.InDelta(t, w.perWrite(), w.reviews(tb)-before, 0)
	}, time.Minute, 10*time.Millisecond, "the API server does not call %s", w.name)
}

// rounds writes a route n times in each of the variants, each round in another
// order, and adds the durations. It fails if a write was not reviewed as
// expected.
func (a *applying) rounds(tb testing.TB, n int, write func(testing.TB, *variant) time.Duration, into samples) {
	tb.Helper()
	all := a.all()
	before := make([]float64, len(all))
	for i, w := range all {
		before[i] = w.reviews(tb)
	}
	for range n {
		for _, i := range a.random.Perm(len(all)) {
			w := all[i]
			into[w.name] = append(into[w.name], write(tb, w))
		}
		a.n++
	}
	for i, w := range all {
		// An API server that finds its cache stale repeats a write, with all its
		// reviews.
		got, want := w.reviews(tb)-before[i], w.perWrite()*float64(n)
		require.GreaterOrEqual(tb, got, want, "reviews of %d writes to %s", n, w.name)
		require.LessOrEqual(tb, got, 2*want, "reviews of %d writes to %s", n, w.name)
	}
}

// request sends the request of kubectl apply --server-side.
func (a *applying) request(tb testing.TB, w *variant) time.Duration {
	tb.Helper()
	route := a.route(tb, w, a.n%differing)
	body, o := written(tb, route), metav1.PatchOptions{FieldManager: fieldManager}
	to := a.routes.Namespace(w.namespace)
	start := time.Now()
	_, err := to.Patch(tb.Context(), route.GetName(), types.ApplyYAMLPatchType, body, o)
	took := time.Since(start)
	require.NoError(tb, err)
	return took
}

// kubectl applies a route as a user does.
func (a *applying) kubectl(tb testing.TB, w *variant) time.Duration {
	tb.Helper()
	manifest := string(written(tb, a.route(tb, w, differing)))
	start := time.Now()
	got := a.Apply(manifest)
	took := time.Since(start)
	require.Zero(tb, got.Code, got.Stderr)
	return took
}

// route returns the i-th route of a variant, with another first hostname in each
// round.
func (a *applying) route(tb testing.TB, w *variant, i int) *unstructured.Unstructured {
	tb.Helper()
	out := withoutServerFields(a.size.LargeRoute(i))
	out.SetNamespace(w.namespace)
	worlds.Rename(worlds.Spec(out.Object), fmt.Sprintf("n%d-", a.n))
	return out
}

func written(tb testing.TB, object *unstructured.Unstructured) []byte {
	tb.Helper()
	data, err := json.Marshal(object)
	require.NoError(tb, err)
	return data
}
