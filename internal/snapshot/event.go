package snapshot

import (
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Event is a change of the current view.
type Event struct {
	// Before is the object before the change, nil if it was created; After the object
	// after it, nil if it was deleted.
	Before, After Object
	// Kinds is set if the policy kinds changed, and with them any number of policies.
	// Before and After are nil then.
	Kinds bool
}

// Objects returns the objects of events, before and after each.
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

// Observation is a state of an object that was received from the API server, whether or
// not the view holds objects of its kind or can decode it.
type Observation struct {
	Ref api.Ref
	// UID and Version (its resourceVersion) of the object, empty if the object was
	// deleted and this is only known from a list.
	UID     types.UID
	Version string
	// Deleted is set if the object was deleted; Version is that of the deletion.
	Deleted bool
	// Marks on the object, unless it was deleted.
	Marks Marks
}

// Subscribe registers a function that is called with the changes of the view, after each
// new view is published, in order. It is called under the lock of the writers: it must
// be fast, and must not write to the store. Subscribe before the first write.
func (s *Store) Subscribe(fn func([]Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, fn)
}

// BeforeChange registers a function that is called with the next view and its changes,
// before that view is published. It is called under the lock of the writers: it must be
// fast, and must not write to the store. Register it before the first write.
func (s *Store) BeforeChange(fn func(*View, []Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeChange = append(s.beforeChange, fn)
}

// Watch registers a function that is called with what was observed, after the view
// includes it. It may be called concurrently, and must be fast. Watch before the first
// write.
func (s *Store) Watch(fn func([]Observation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observers = append(s.observers, fn)
}

// Observe reports observations to the watchers. Sources call it once the view includes
// them.
func (s *Store) Observe(observed ...Observation) {
	for _, fn := range s.observers {
		fn(observed)
	}
}

// eventsOf returns the events of changes of a view, nil if there are no subscribers.
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
