package sweep

import (
	"sync"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/store"
)

// dirt is what changed since the last sweep.
type dirt struct {
	// most objects are remembered: beyond it everything is dirty.
	most int
	wake chan struct{}

	mu      sync.Mutex
	all     bool
	objects []store.Object
}

func newDirt(most int) *dirt { return &dirt{most: most, wake: make(chan struct{}, 1), all: true} }

// note books events. What says how policies are read, or what is demanded of
// them, may matter to any path.
func (d *dirt) note(events []store.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		if d.all {
			break
		}
		if e.Kinds || isConstraint(e.Before) || isConstraint(e.After) {
			d.forget()
			break
		}
		for _, o := range []store.Object{e.Before, e.After} {
			if o != nil {
				d.objects = append(d.objects, o)
			}
		}
		if len(d.objects) > d.most {
			d.forget()
		}
	}
	select {
	case d.wake <- struct{}{}:
	default: // it will wake up anyway
	}
}

func isConstraint(o store.Object) bool {
	_, ok := o.(*constraint.Constraint)
	return ok
}

// everything makes everything dirty.
func (d *dirt) everything() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
}

func (d *dirt) forget() { d.all, d.objects = true, nil }

// take returns what is dirty, and has it clean from now on. A view that is
// taken after it shows all of that.
func (d *dirt) take() (objects []store.Object, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	objects, all = d.objects, d.all
	d.objects, d.all = nil, false
	return objects, all
}
