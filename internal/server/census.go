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

// censusAge is for how long a census holds: it looks at every path of the cluster,
// and whoever scrapes asks for it as often as they like.
const censusAge = 30 * time.Second

// noPolicy is the state of a path on which no policy of the kind falls.
const noPolicy = "none"

// census counts the paths by policy kind and state.
type census struct {
	engine *effective.Engine
	log    logr.Logger

	mu     sync.Mutex                  // of scrapes: one counts, the others wait for it
	of     weak.Pointer[snapshot.View] // what was counted, not kept alive by that
	at     time.Time
	counts effective.StateCounts
}

// count returns the counts of a view, or of an earlier one that is not older
// than censusAge; nil if they cannot be told. They must not be edited.
func (c *census) count(v *snapshot.View) effective.StateCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == weak.Make(v) || !c.at.IsZero() && time.Since(c.at) < censusAge {
		return c.counts
	}
	counts, err := c.fresh(v)
	if err != nil {
		c.log.Error(err, "count paths; the metric overrule_paths is left out")
	}
	c.of, c.at, c.counts = weak.Make(v), time.Now(), counts
	return counts
}

// fresh counts. A panic is an error: what judges must outlive what only tells.
func (c *census) fresh(v *snapshot.View) (_ effective.StateCounts, err error) {
	defer background.Recovered(&err, "count")
	return c.engine.CountStates(v, effective.NewBudget(context.Background(), math.MaxUint64))
}
