package snapshot

import (
	"slices"
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Changes collects the changes of a store until they are taken.
type Changes struct {
	limit  int
	ignore func(Event) bool
	wake   chan struct{}

	mu      sync.Mutex
	pending Changed
}

// Changed is what changed since the last call of Take.
type Changed struct {
	// All is set if everything may have changed. The other fields are empty then.
	All    bool
	Events []Event
	// Marked are objects whose marks changed.
	Marked []api.Ref
}

// NewChanges returns a Changes that collects up to limit changes. Beyond the limit, and
// at first, Take returns All. Events for which ignore returns true are not collected;
// ignore may be nil. It is called by the writers of the store and must be fast.
func NewChanges(limit int, ignore func(Event) bool) *Changes {
	return &Changes{limit: limit, ignore: ignore, wake: make(chan struct{}, 1), pending: Changed{All: true}}
}

// Record adds events of the store. After a change of the policy kinds, any policy may
// have changed.
func (c *Changes) Record(events []Event) {
	if c.ignore != nil {
		events = slices.DeleteFunc(slices.Clone(events), c.ignore) // the slice is shared
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

// RecordMarks adds objects whose marks changed.
func (c *Changes) RecordMarks(objects []api.Ref) {
	if len(objects) > 0 {
		c.update(func() { c.pending.Marked = append(c.pending.Marked, objects...) })
		c.signal()
	}
}

// RecordAll has the next Take return All.
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
	default: // a signal is pending already
	}
}

// Wake returns a channel that receives once there are new changes.
func (c *Changes) Wake() <-chan struct{} { return c.wake }

// Take returns what changed since the last call, and clears it. A view that is read
// afterwards includes all of these changes.
func (c *Changes) Take() Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.pending
	c.pending = Changed{}
	return out
}
