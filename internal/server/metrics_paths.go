package server

import (
	"context"
	"math"
	"sync"
	"time"
	"weak"

	"github.com/go-logr/logr"

	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// pathCountTTL is how long a count is reused: it visits every path of the cluster,
// and scrapes may be frequent.
const pathCountTTL = 30 * time.Second

// noPolicy is the state of a path that no policy of the kind affects.
const noPolicy = "none"

// pathCounter counts the paths by policy kind and state.
type pathCounter struct {
	engine *effective.Engine
	log    logr.Logger

	mu          sync.Mutex                  // concurrent scrapes wait for one count
	countedView weak.Pointer[snapshot.View] // weak: an old view may be collected
	countedAt   time.Time
	counts      effective.StateCounts
}

// count returns the counts of v, or of an earlier view that is not older than
// pathCountTTL; nil if counting failed. Callers must not modify the result.
func (c *pathCounter) count(v *snapshot.View) effective.StateCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.countedView == weak.Make(v) || !c.countedAt.IsZero() && time.Since(c.countedAt) < pathCountTTL {
		return c.counts
	}
	counts, err := c.countPaths(v)
	if err != nil {
		c.log.Error(err, "cannot count paths; omitting overrule_paths")
	}
	c.countedView, c.countedAt, c.counts = weak.Make(v), time.Now(), counts
	return counts
}

// countPaths counts the paths of v. A panic becomes an error: a metric must not
// end the process.
func (c *pathCounter) countPaths(v *snapshot.View) (_ effective.StateCounts, err error) {
	defer background.RecoverError(&err, "count")
	return c.engine.CountStates(v, effective.NewBudget(context.Background(), math.MaxUint64))
}
