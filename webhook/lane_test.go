package webhook

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/guard"
)

// Large answers take much memory.
func TestLaneSlots(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for procs, want := range map[int]int64{1: 2, 2: 2, 4: 2, 64: 3} {
		runtime.GOMAXPROCS(procs)
		l := newLane(NewMetrics(nil).waiting)
		assert.True(t, l.running.TryAcquire(want), "%d CPUs", procs)
		assert.False(t, l.running.TryAcquire(1), "%d CPUs", procs)
	}
}

// A namespace with a thousand reviews that wait delays that of another one by one turn.
func TestLaneIsFairByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(NewMetrics(nil).waiting)
		l.running = semaphore.NewWeighted(2)
		var mu sync.Mutex
		var order []string
		var running []*laneEntry
		arrive := func(namespace string) {
			e, ok := l.enter(namespace, 1)
			require.True(t, ok)
			go func() {
				if e.acquire(t.Context(), 1) {
					mu.Lock()
					defer mu.Unlock()
					order, running = append(order, namespace), append(running, e)
				}
			}()
			synctest.Wait()
		}
		finish := func() {
			mu.Lock()
			running[0].release(1)
			running[0].leave()
			running = running[1:]
			mu.Unlock()
			synctest.Wait()
		}
		for range 1000 {
			arrive("a")
		}
		assert.Equal(t, []string{"a"}, order, "the other slot is for others")
		arrive("b")
		assert.Equal(t, []string{"a", "b"}, order)
		for range 3 {
			arrive("c")
			arrive("d")
		}
		for range 6 {
			finish()
		}
		assert.Equal(t, []string{"a", "b", "c", "d", "a", "c", "d", "a"}, order)
		for len(running) > 0 {
			finish()
		}
		assert.Len(t, order, 1007)
		assert.Empty(t, l.namespaces)
		assert.EqualValues(t, maxLaneBytes, l.free)
	})
}

// Whatever a namespace has in the lane, there is room for others.
func TestLaneMemoryIsShared(t *testing.T) {
	l := newLane(NewMetrics(nil).waiting)
	var entries []*laneEntry
	fill := func(namespace string, weight int64) (held int64) {
		for {
			e, ok := l.enter(namespace, weight)
			if !ok {
				return held
			}
			entries, held = append(entries, e), held+weight
		}
	}
	assert.EqualValues(t, maxLaneBytes/2, fill("a", minWeight))
	assert.EqualValues(t, maxLaneBytes/4, fill("b", minWeight))
	assert.Zero(t, fill("a", minWeight))
	e, ok := l.enter("c", maxReviewBody)
	require.True(t, ok)
	for _, e := range append(entries, e) {
		e.leave()
	}
	assert.EqualValues(t, maxLaneBytes, l.free)
	_, ok = l.enter("a", DefaultBodyLimit)
	assert.True(t, ok, "the largest review")
	_, ok = l.enter("b", maxReviewBody)
	assert.True(t, ok)
}

func TestLaneWaitEndsWithItsContext(t *testing.T) {
	for name, blocked := range map[string]struct{ turn, large, slots int64 }{
		"by the turn":          {turn: 1},
		"by the large reviews": {large: maxLargeReviewBytes},
		"by the slots":         {slots: minLaneSlots},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			l := newLane(NewMetrics(nil).waiting)
			e, ok := l.enter("a", 2*largeReview)
			require.True(t, ok)
			require.True(t, e.share.turn.TryAcquire(blocked.turn) && l.large.TryAcquire(blocked.large) && l.running.TryAcquire(blocked.slots))
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			assert.False(t, e.acquire(ctx, 2*largeReview))
			e.share.turn.Release(blocked.turn)
			l.large.Release(blocked.large)
			l.running.Release(blocked.slots)
			assert.True(t, e.acquire(t.Context(), 2*largeReview), "nothing was kept")
			e.release(2 * largeReview)
			assert.True(t, e.share.turn.TryAcquire(1) && l.large.TryAcquire(maxLargeReviewBytes) && l.running.TryAcquire(minLaneSlots))
		})
	}
}

// Writes wait for none of what is not stored, and take no part in its limits.
func TestDryRunsAndReviewsTakeNothingFromWrites(t *testing.T) {
	b := newBlocking()
	leave := make(chan struct{})
	r := &readers{onAsked: func() { <-leave }}
	d := newTestServer(t, Options{Readers: r, MaxConcurrent: 1, Guard: &guard.Guard{ReadLive: b.live}}, cluster)
	dry := func(object string) *admissionv1.AdmissionRequest {
		out := create(t, object)
		out.DryRun = new(true)
		return out
	}
	var asking sync.WaitGroup
	for i := range 20 {
		held := dry(homeless())
		held.Namespace = fmt.Sprint("tenant", i%4)
		asking.Go(func() { d.post(t, PathReview+"?timeout=30s", review(t, policyReview(t, aboutRoute))) })
		asking.Go(func() { d.post(t, PathValidate+"?timeout=30s", review(t, held)) })
	}
	require.Eventually(t, func() bool {
		d.lane.mu.Lock()
		defer d.lane.mu.Unlock()
		return d.lane.free == maxLaneBytes-40*minWeight
	}, time.Minute, time.Millisecond, "all of them are held")
	for range 10 {
		assert.True(t, d.validated(t, create(t, routeLimits(20))).Allowed)
		assert.True(t, d.mutated(t, create(t, routeLimits(20))).Allowed)
	}
	assert.Zero(t, d.limiter.waiting.Load())
	require.Eventually(t, func() bool { return d.limiter.memory.TryAcquire(DefaultMaxBytes) }, time.Minute, time.Millisecond,
		"the memory of writes is free as soon as the last evaluation has ended")
	d.limiter.memory.Release(DefaultMaxBytes)

	for { // until the share of the namespace is full
		e, ok := d.lane.enter("app", minWeight)
		if !ok {
			break
		}
		defer e.leave()
	}
	assert.EqualValues(t, http.StatusTooManyRequests, d.asked(t, policyReview(t, aboutRoute)).Result.Code)
	assert.Equal(t, tooMany(), d.validated(t, dry(routeLimits(20))))
	assert.Equal(t, unpatchedResponse(), d.mutated(t, dry(route)))
	assert.True(t, d.validated(t, create(t, routeLimits(20))).Allowed)
	close(b.free)
	close(leave)
	asking.Wait()
}
