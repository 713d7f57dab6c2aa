package bench

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// growthSizes are the numbers of routes of the curves. There are a tenth as many
// gateways, and a policy for each route.
var growthSizes = []int{1_000, 3_000, 10_000, 30_000, 100_000}

// operation is one op of a curve; i counts them from 0.
type operation func(i int) error

// growing are the curves of time. Each prepares its operation on a cluster of any
// size.
var growing = []struct {
	what    string
	prepare func(testing.TB, *growthCluster) operation
}{
	{"route-write", routeWrite},
	{"gateway-policy", gatewayPolicy},
	{"event", routeEvent},
	{"event-policy", policyEvent},
}

// BenchmarkGrowth measures how costs grow with the number of routes. One op is
//
//   - route-write: an UPDATE review of a route at the validating webhook, from its
//     bytes to the response, without a connection.
//   - gateway-policy: an UPDATE of the policy of a gateway with 100 routes,
//     whatever the size of the cluster: decoded and evaluated.
//   - gateway-policy-all: the same of a gateway with all of them.
//   - event, event-policy: one event of a route or a policy, from the object
//     that a watch has decoded to the store's next snapshot.
//   - memory has no op: MiB is the live heap of the store.
//
// The curve of the start takes a real API server: it is a benchmark of the same
// name in package bench_test, with the build tag e2e.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range growthSizes {
		if testing.Short() && n > growthSizes[0] {
			break
		}
		growth(b, n)
		b.Run(fmt.Sprintf("gateway-policy-all/routes=%d", n), func(b *testing.B) {
			measure(b, wholePolicy(b, n))
		})
	}
}

// growth measures one point of each curve. The cluster is made when it is first
// needed, and released after the last point: the largest has about 500 MiB.
func growth(b *testing.B, n int) {
	var w *growthCluster
	made := func(b *testing.B) *growthCluster {
		if w == nil {
			w = newGrowthCluster(b, n)
		}
		return w
	}
	for _, g := range growing {
		b.Run(fmt.Sprintf("%s/routes=%d", g.what, n), func(b *testing.B) {
			measure(b, g.prepare(b, made(b)))
		})
	}
	b.Run(fmt.Sprintf("memory/routes=%d", n), func(b *testing.B) { reportHeld(b, made(b)) })
}

func reportHeld(b *testing.B, w *growthCluster) {
	b.Helper()
	for b.Loop() {
		runtime.KeepAlive(w)
	}
	b.ReportMetric(0, "ns/op") // hidden: no time was measured
	b.ReportMetric(w.heldMiB, "MiB")
}

func measure(b *testing.B, op operation) {
	b.Helper()
	require.NoError(b, op(0)) // fills the memo, as earlier writes would
	runtime.GC()              // garbage of the preparation is not measured
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if err := op(i); err != nil {
			b.Fatal(err)
		}
	}
}
