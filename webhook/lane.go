package webhook

import (
	"math"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// Limits of a lane. An answer to an EffectivePolicyReview takes some milliseconds, or up to
// a second with ten thousand paths, and then up to 100 MiB of memory. Nodes have many CPUs,
// and the container has a memory limit for writes.
const (
	minLaneSlots  = 2 // so that one namespace never has them all
	maxLaneSlots  = 3
	maxLaneBytes  = 16 << 20
	maxReviewBody = 2 << 20 // an object of 1.5 MiB, with what the API server adds
)

// lane limits the concurrent work for what is not stored, dry runs and
// EffectivePolicyReviews, so that writes do not wait for it. One review of each namespace
// is evaluated, or waits for a slot, at a time, and the slots are given in the order of
// arrival. So a review waits for one other review of its lane of each namespace at most,
// besides those of its own.
type lane struct {
	slots

	mu         sync.Mutex
	free       int64 // bytes
	namespaces map[string]*laneShare
}

// laneShare is what a namespace has of a lane.
type laneShare struct {
	turn  *semaphore.Weighted
	bytes int64 // of its reviews that are held
}

func newLane(waiting prometheus.Gauge) *lane {
	return &lane{
		slots: newSlots(min(max(minLaneSlots, runtime.GOMAXPROCS(0)/2), maxLaneSlots), math.MaxInt64, waiting), // its memory limits what waits
		free:  maxLaneBytes, namespaces: make(map[string]*laneShare),
	}
}

// laneEntry is a review in a lane.
type laneEntry struct {
	slots

	lane      *lane
	namespace string
	share     *laneShare
	bytes     int64
}

// enter reserves the memory of a review of a weight. ok is false if its namespace would
// have more than what remains for others: so there is always room for a namespace that
// uses little.
func (l *lane) enter(namespace string, weight int64) (entry *laneEntry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := l.namespaces[namespace]
	if share == nil {
		share = &laneShare{turn: semaphore.NewWeighted(1)}
	}
	weight = min(weight, maxLaneBytes/2)
	if share.bytes+weight > l.free {
		return nil, false
	}
	l.namespaces[namespace] = share
	share.bytes, l.free = share.bytes+weight, l.free-weight
	entry = &laneEntry{slots: l.slots, lane: l, namespace: namespace, share: share, bytes: weight}
	entry.turn = share.turn
	return entry, true
}

// leave frees the memory of the review.
func (e *laneEntry) leave() {
	l := e.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	e.share.bytes, l.free = e.share.bytes-e.bytes, l.free+e.bytes
	if e.share.bytes == 0 {
		delete(l.namespaces, e.namespace)
	}
}

// enterLane moves what is not stored, and its memory, to the lane. It returns false if
// there is no room for it.
func (c *call) enterLane() bool {
	if c.name != webhookReview && !isDryRun(c.request) {
		return true
	}
	entry, ok := c.lane.enter(c.request.Namespace, c.reserved.weight)
	if !ok {
		return false
	}
	c.slots = entry.slots
	c.reserved.moveTo(entry.leave)
	return true
}
