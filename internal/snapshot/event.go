package snapshot

import (
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Event is a change of the current view.
type Event struct {
	// Before is the object as the view had it, nil if it had none; After as it
	// has it now, nil if it is gone.
	Before, After Object
	// Kinds tells that the policy kinds are others now, and with them any
	// number of policies. There is no object then.
	Kinds bool
}

// Objects returns those of events, before and after each.
func Objects(events []Event) []Object {
	var out []Object
	for _, e := range events {
		for _, o := range []Object{e.Before, e.After} {
			if o != nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// Observation is what the API server told of an object, whether or not the view holds
// objects of its kind, or can read it.
type Observation struct {
	Ref api.Ref
	// UID and Version (its resourceVersion) of the object, "" where it is only
	// known that a list does not have it any more.
	UID     types.UID
	Version string
	// Deleted tells that it is gone; Version is that of its end.
	Deleted bool
	// Marks that the object has on it, unless it is gone.
	Marks Marks
}

// Subscribe has a function called with what changes in the view, after each
// new moment is there to be had by View, in the order of the moments. It is
// called under the lock of the writers: it must be quick, and must not write to
// the store. Subscribe before anything is fed.
func (s *Store) Subscribe(fn func([]Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, fn)
}

// BeforeChange has a function called with the next view and what changes in it, before
// View returns that view. It is called under the lock of the writers: it must be
// quick, and must not write to the store. Precede before anything is fed.
func (s *Store) BeforeChange(fn func(*View, []Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeChange = append(s.beforeChange, fn)
}

// Watch has a function called with what was seen, after the view shows it. It
// may be called by several goroutines at once, and must be quick. Watch before
// anything is fed.
func (s *Store) Watch(fn func([]Observation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observers = append(s.observers, fn)
}

// Observe tells what was seen. Feeders call it once the view shows it.
func (s *Store) Observe(seen ...Observation) {
	for _, fn := range s.observers {
		fn(seen)
	}
}

// eventsOf returns what changes do to a view; nobody asks if nobody listens.
func (s *Store) eventsOf(v *View, changes []Change) []Event {
	if len(s.subscribers) == 0 && len(s.beforeChange) == 0 {
		return nil
	}
	out := make([]Event, 0, len(changes))
	for _, c := range changes {
		if e := (Event{Before: v.Get(c.Ref), After: c.Object}); e.Before != nil || e.After != nil {
			out = append(out, e)
		}
	}
	return out
}

func (s *Store) notifyBefore(v *View, events []Event) {
	if len(events) == 0 {
		return
	}
	for _, fn := range s.beforeChange {
		fn(v, events)
	}
}

func (s *Store) notify(events []Event) {
	if len(events) == 0 {
		return
	}
	for _, fn := range s.subscribers {
		fn(events)
	}
}
