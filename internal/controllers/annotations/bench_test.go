package annotations

import (
	"context"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// countingCluster counts writes and does not return them as observations.
type countingCluster struct{ writes int }

func (a *countingCluster) Write(_ context.Context, _ api.Ref, _ types.UID, w *DesiredMarks) (uint64, error) {
	a.writes++
	return w.Hash(), nil
}

// cpuTime returns the CPU time of the process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC() // the second collection frees the contents of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkFullResync computes the marks of 10,000 routes, 1,000 gateways and 11,000
// policies, as a new leader does, and evaluates writes of routes before and during
// that.
func BenchmarkFullResync(b *testing.B) {
	for b.Loop() {
		size := worlds.Full
		c := worlds.Empty(b)
		cluster, engine := &countingCluster{}, effective.NewEngine()
		r := New(Options{Store: c.Store, Engine: engine, Cluster: cluster, Affected: true, Delay: time.Millisecond})
		var seen []snapshot.Observation
		for object := range worlds.Objects(size) {
			c.Put(b, object)
			seen = append(seen, snapshot.Observation{Ref: worlds.RefOf(object), UID: types.UID("00000000-0000-0000-0000-000000000000")})
		}
		before := heapBytes()
		r.inventory.observe(seen)
		b.ReportMetric(float64(heapBytes()-before)/float64(len(r.inventory.entries)), "heap-B/object")

		g := &guard.Guard{Engine: engine}
		quiet, _ := measureReviews(b, g, c, size, func() bool { return true })
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		begun, used := time.Now(), cpuTime(b)
		go func() { ended <- r.Start(ctx) }()
		require.Eventually(b, func() bool { n, _ := r.pending.snapshot(time.Now()); return n > 0 }, time.Minute, time.Millisecond)
		beside, n := measureReviews(b, g, c, size, func() bool { n, _ := r.pending.snapshot(time.Now()); return n > 0 })
		took, cpu := time.Since(begun), cpuTime(b)-used
		for left := 1; left > 0; left, _ = r.pending.snapshot(time.Now()) {
			time.Sleep(time.Millisecond)
			took, cpu = time.Since(begun), cpuTime(b)-used
		}
		cancel()
		require.NoError(b, <-ended)
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric((cpu - time.Duration(n)*beside).Seconds(), "cpu-s")
		b.ReportMetric(float64(cluster.writes), "writes")
		b.ReportMetric(float64(quiet.Microseconds()), "review-quiet-p50-µs")
		b.ReportMetric(float64(beside.Microseconds()), "review-beside-p50-µs")
	}
}

// measureReviews evaluates writes of routes, at most 2,000 and one per millisecond,
// while on returns true, and returns the median duration and the number of writes.
func measureReviews(b *testing.B, g *guard.Guard, c *worlds.Cluster, size worlds.Size, on func() bool) (time.Duration, int) {
	b.Helper()
	var took []time.Duration
	for i := 0; i < 2000 && on(); i++ {
		v, _ := c.Store.View()
		w := size.RouteWrite(i)
		before := c.Decode(b, w.Before)
		after := c.Decode(b, w.After)
		start := time.Now()
		_, err := g.Evaluate(b.Context(), v.With(snapshot.Put(before)), guard.Change{Operation: guard.Update, Before: before, After: after}, nil)
		took = append(took, time.Since(start))
		require.NoError(b, err)
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	return took[len(took)/2], len(took)
}
