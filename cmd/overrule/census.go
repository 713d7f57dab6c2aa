package main

import (
	"context"
	"math"
	"sync"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/store"
)

// censusAge is for how long a census holds: it walks every path of the cluster,
// and whoever scrapes asks for it as often as they like.
const censusAge = 30 * time.Second

// noPolicy is the state of a path on which no policy of the kind falls.
const noPolicy = "none"

// census counts the paths by policy kind and state.
type census struct {
	mu     sync.Mutex
	of     *store.View
	at     time.Time
	counts map[pathsOf]int
}

// pathStates are the states that a path can have.
var pathStates = []string{string(api.Enforced), string(api.PartiallyEnforced), string(api.Inactive), noPolicy}

type pathsOf struct{ kind, state string }

// count returns the counts of a view, or of an earlier one that is not older
// than censusAge. They must not be edited.
func (c *census) count(e *effective.Engine, v *store.View) map[pathsOf]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts != nil && (c.of == v || time.Since(c.at) < censusAge) {
		return c.counts
	}
	counts := make(map[pathsOf]int)
	for _, k := range v.Kinds() {
		for _, state := range pathStates { // what is not there is 0: an alert may wait for it
			counts[pathsOf{k.Ref().String(), state}] = 0
		}
	}
	budget := effective.NewBudget(context.Background(), math.MaxUint64)
	err := e.Walk(v, effective.Scope{All: true}, true, budget, func(x *effective.Effective) error {
		state := string(x.State())
		if state == "" {
			state = noPolicy
		}
		counts[pathsOf{x.Kind.Ref().String(), state}]++
		return nil
	})
	if err != nil {
		return c.counts // an unlimited budget does not end
	}
	c.of, c.at, c.counts = v, time.Now(), counts
	return counts
}
