package refresh

import (
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/store"
)

// changes are what was heard since the last look.
type changes struct {
	// most of them are remembered: beyond it, everything may have changed.
	most int
	wake chan struct{}

	mu sync.Mutex
	heard
}

// heard is a number of changes.
type heard struct {
	all    bool
	events []store.Event
	// objects that have other marks than before.
	objects []api.Ref
}

func newChanges(most int) *changes { return &changes{most: most, wake: make(chan struct{}, 1)} }

// note books events of the store. What is demanded of effective policies is no part
// of any mark.
func (c *changes) note(events []store.Event) {
	c.book(func() {
		for _, e := range events {
			switch {
			case e.Kinds:
				c.all = true
			case isConstraint(e.Before) || isConstraint(e.After):
			default:
				c.events = append(c.events, e)
			}
		}
	})
}

// other books objects that have other marks now.
func (c *changes) other(objects []api.Ref) {
	if len(objects) > 0 {
		c.book(func() { c.objects = append(c.objects, objects...) })
	}
}

// everything tells that everything may have changed.
func (c *changes) everything() { c.book(func() { c.all = true }) }

func (c *changes) book(act func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	act()
	if c.all || len(c.events)+len(c.objects) > c.most {
		c.heard = heard{all: true}
	}
	select {
	case c.wake <- struct{}{}:
	default: // it will wake up anyway
	}
}

// take returns what was heard, and begins anew. A view that is taken after it shows
// all of that.
func (c *changes) take() heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.heard
	c.heard = heard{}
	return out
}

func isConstraint(o store.Object) bool {
	_, ok := o.(*constraint.Constraint)
	return ok
}
