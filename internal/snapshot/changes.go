package snapshot

import (
	"slices"
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Changes gathers what changes in a store, for whoever looks at it a moment later.
type Changes struct {
	limit  int
	ignore func(Event) bool
	wake   chan struct{}

	mu      sync.Mutex
	pending Changed
}

// Changed is what changed since the last look.
type Changed struct {
	// All tells that everything may have changed. Nothing else is known then.
	All    bool
	Events []Event
	// Marked are objects that have other marks than before.
	Marked []api.Ref
}

// NewChanges gathers so many changes at most: beyond that, everything may have
// changed, as it may have at first. Events that are idle to whoever looks take none
// of that room; nil is for none. It is called for by the store's writers: it must be quick.
func NewChanges(limit int, ignore func(Event) bool) *Changes {
	return &Changes{limit: limit, ignore: ignore, wake: make(chan struct{}, 1), pending: Changed{All: true}}
}

// Record books events of the store. Policies that are read in another way may be any.
func (c *Changes) Record(events []Event) {
	if c.ignore != nil {
		events = slices.DeleteFunc(slices.Clone(events), c.ignore) // others are given the same
	}
	if len(events) == 0 {
		return
	}
	c.update(func() {
		for _, e := range events {
			c.pending.All = c.pending.All || e.Kinds
		}
		c.pending.Events = append(c.pending.Events, events...)
	})
	c.signal()
}

// RecordMarks books objects that have other marks now.
func (c *Changes) RecordMarks(objects []api.Ref) {
	if len(objects) > 0 {
		c.update(func() { c.pending.Marked = append(c.pending.Marked, objects...) })
		c.signal()
	}
}

// RecordAll has everything looked at, the next time that someone looks.
func (c *Changes) RecordAll() { c.update(func() { c.pending.All = true }) }

func (c *Changes) update(act func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	act()
	if c.pending.All || len(c.pending.Events)+len(c.pending.Marked) > c.limit {
		c.pending = Changed{All: true}
	}
}

func (c *Changes) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // whoever looks will wake up anyway
	}
}

// Wake returns a channel that has something once there is something new to look at.
func (c *Changes) Wake() <-chan struct{} { return c.wake }

// Take returns what changed, and begins anew. A view that is taken after it shows
// all of that.
func (c *Changes) Take() Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.pending
	c.pending = Changed{}
	return out
}
