package bench

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// growthSizes are the numbers of routes that the curves go over. There are a
// tenth as many gateways, and a policy for each route.
var growthSizes = []int{1_000, 3_000, 10_000, 30_000, 100_000}

// operation is what one op of a curve does; i counts them, from 0.
type operation func(i int) error

// growing are the curves of time. Each prepares its operation on a world whose
// size it does not know.
var growing = []struct {
	what    string
	prepare func(testing.TB, *growthCluster) operation
}{
	{"route-write", routeWrite},
	{"gateway-policy", gatewayPolicy},
	{"event", routeEvent},
	{"event-policy", policyEvent},
}

// BenchmarkGrowth shows what costs grow with. One op is
//
//   - route-write: an UPDATE review of a route at the validating door, from its
//     bytes to the answer's, without the wire.
//   - gateway-policy: an UPDATE of the policy of a gateway with 100 routes,
//     however many there are in the cluster: decoded and judged.
//   - gateway-policy-all: the same of a gateway with all of them.
//   - event, event-policy: one event of a route or a policy, from the object
//     that a watch has decoded to the store's next moment.
//   - memory has no op: MiB is what the store keeps alive.
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

// growth draws one point of each curve. The world is made when it is first
// asked for, and goes when the last point is drawn: the largest has some 500
// MiB.
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
	b.ReportMetric(0, "ns/op") // hidden: nothing was timed
	b.ReportMetric(w.heldMiB, "MiB")
}

func measure(b *testing.B, op operation) {
	b.Helper()
	require.NoError(b, op(0)) // the first fills the memo, as the writes before did
	runtime.GC()              // nobody pays for what was made before
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if err := op(i); err != nil {
			b.Fatal(err)
		}
	}
}

// The curves say what they claim: each operation is done and answered as it
// would be in a cluster, and the gateway's policy touches the paths of its own
// routes whatever the size.
func TestEachCurveDoesTheSameAtAnySize(t *testing.T) {
	for _, n := range []int{40, 160} {
		w := newGrowthCluster(t, n)
		for _, g := range growing {
			t.Run(fmt.Sprintf("%s/routes=%d", g.what, n), func(t *testing.T) {
				op := g.prepare(t, w)
				for i := range 3 {
					require.NoError(t, op(i))
				}
			})
		}
		require.Positive(t, w.heldMiB)
		require.NoError(t, wholePolicy(t, n)(0))
	}
}
