//go:build e2e

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/worlds"
)

const (
	// aSecond is the number of writes per second, for the time writing.
	aSecond = 100
	writing = 30 * time.Second
	// idling is the time for which the idle server is measured before.
	idling = 10 * time.Second
)

// BenchmarkFootprint measures one server at 100 writes per second through the
// real API server: of ten writes, six are of a route's policy, three of a route,
// and one of a gateway's policy. Each is evaluated twice, by the mutating and by
// the validating webhook. Memory is resident memory, and the heap with its
// garbage. One op is half a minute. A busy machine stores fewer writes per
// second; the CPU time per write hardly depends on that. Each write that is sent
// must be stored.
func BenchmarkFootprint(b *testing.B) {
	for _, routes := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			c := newCluster(b, routes)
			o, err := c.site.Boot(b.Context(), server.Options{})
			require.NoError(b, err)
			defer func() { assert.NoError(b, o.Stop()) }()
			var f footprint
			for b.Loop() {
				f = c.footprint(b, o)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(f.rate, "writes/s")
			b.ReportMetric(float64(f.failed), "not-stored")
			b.ReportMetric(f.idle, "idle-cores")
			b.ReportMetric(f.cores, "cores")
			b.ReportMetric(f.cores/f.rate*1000, "CPU-ms/write")
			b.ReportMetric(mib(f.start), "start-MiB")
			b.ReportMetric(mib(f.most), "resident-MiB")
			b.ReportMetric(mib(f.peak), "peak-MiB")
			b.ReportMetric(mib(f.heap), "heap-MiB")
			assert.Zero(b, f.failed, "of %d writes, so many were not stored: the log says why", f.sent)
		})
	}
}

// footprint is the resource usage of a server.
type footprint struct {
	rate, idle, cores float64
	start, most, peak uint64 // resident bytes: when ready, the maximum while writing, the maximum ever
	heap              uint64 // bytes: the maximum while writing
	failed, sent      int64
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func usage(tb testing.TB, s *server.Server) process.Usage {
	tb.Helper()
	u, err := s.Usage()
	require.NoError(tb, err)
	return u
}

// footprint measures a server while it is idle, and during writes.
func (c *cluster) footprint(tb testing.TB, s *server.Server) footprint {
	tb.Helper()
	f := footprint{start: usage(tb, s).Held}
	before, since := usage(tb, s), time.Now()
	time.Sleep(idling)
	f.idle = cores(before, usage(tb, s), since)

	ctx, cancel := context.WithTimeout(tb.Context(), writing)
	defer cancel()
	var looking sync.WaitGroup
	looking.Go(func() { f.watch(ctx, tb, s) })
	before, since = usage(tb, s), time.Now()
	c.stream(ctx, tb, &f)
	took := time.Since(since)
	f.cores = cores(before, usage(tb, s), since)
	looking.Wait()
	f.rate, f.peak = float64(f.sent)/took.Seconds(), usage(tb, s).Peak
	return f
}

func cores(before, after process.Usage, since time.Time) float64 {
	return (after.CPU - before.CPU).Seconds() / time.Since(since).Seconds()
}

// watch keeps the maximum of memory.
func (f *footprint) watch(ctx context.Context, tb testing.TB, s *server.Server) {
	for ctx.Err() == nil {
		if u, err := s.Usage(); assert.NoError(tb, err) {
			f.most = max(f.most, u.Held)
		}
		f.heap = max(f.heap, uint64(metric(tb, s, "go_memstats_heap_alloc_bytes")))
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// stream sends writes at a constant rate until ctx ends. If the API server is too
// slow for that, the reported rate is lower.
func (c *cluster) stream(ctx context.Context, tb testing.TB, f *footprint) {
	to, err := c.client()
	require.NoError(tb, err)
	jobs := make(chan int) // unbuffered: a delay is not made up for later
	var sent, failed atomic.Int64
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for i := range jobs {
				sent.Add(1)
				if err := c.rewrite(context.WithoutCancel(ctx), to, i); err != nil {
					failed.Add(1)
					tb.Log(err)
				}
			}
		})
	}
	beat := time.NewTicker(time.Second / aSecond)
	defer beat.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-beat.C
		jobs <- i
	}
	close(jobs)
	group.Wait()
	f.sent, f.failed = sent.Load(), failed.Load()
}

// rewrite sends the i-th write: of ten, six are of a route's policy, three of a
// route and one of a gateway's policy. The objects of a kind take turns, and
// return to their first state in every second write. The busy gateway's policies
// are left out: each of their writes affects half of all routes.
func (c *cluster) rewrite(ctx context.Context, to client.Client, i int) error {
	const busy = 3 // policies
	round, slot := i/10, i%10
	n := func(n, of int, write func(int) worlds.Write) error {
		w := write(n % of)
		if n/of%2 == 1 {
			w = w.Back()
		}
		return send(ctx, to, w)
	}
	switch {
	case slot == 0:
		return n(round, c.size.Gateways-busy, func(n int) worlds.Write { return c.size.GatewayPolicyWrite(busy + n) })
	case slot <= 3:
		return n(round*3+slot-1, c.size.Routes, c.renamed)
	default:
		return n(round*6+slot-4, c.size.Routes, c.size.RoutePolicyWrite)
	}
}

// renamed returns a write of another first hostname on the same listeners.
func (c *cluster) renamed(i int) worlds.Write {
	w := worlds.Write{Before: c.size.Route(i), After: c.size.Route(i)}
	worlds.Rename(worlds.Spec(w.After), "new-")
	return w
}

// send patches the stored object to the written one.
func send(ctx context.Context, to client.Client, w worlds.Write) error {
	ref := w.Ref()
	data, err := json.Marshal(map[string]any{"spec": w.After["spec"]})
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.Group, Version: "v1", Kind: ref.Kind})
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	if err := to.Patch(ctx, o, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patch %s: %w", ref, err)
	}
	return nil
}
