package snapshot

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Store holds the current view, which its sources keep up to date.
type Store struct {
	view  atomic.Pointer[View]
	ready atomic.Bool

	// reached is the highest resourceVersion that a source has reached.
	reached atomic.Uint64

	mu      sync.Mutex // of writers
	waiting map[string]bool
	// pending is copied on each write: every review reads it.
	pending      atomic.Pointer[map[api.PolicyKind]*policykind.Kind]
	subscribers  []func([]Event)
	beforeChange []func(*View, []Event)

	observers []func([]Observation) // set before the first write
}

// New returns an empty store that is not ready until each source was listed once. Without
// sources it is ready at once.
func New(sources ...string) *Store {
	s := &Store{waiting: make(map[string]bool)}
	s.pending.Store(&map[api.PolicyKind]*policykind.Kind{})
	for _, name := range sources {
		s.waiting[name] = true
	}
	s.view.Store(&View{})
	s.ready.Store(len(sources) == 0)
	return s
}

// View returns the current view. ready is false until every source was listed: a partial
// view must not be used for evaluation.
func (s *Store) View() (v *View, ready bool) {
	ready = s.ready.Load() // before the view: once ready, the view is whole
	return s.view.Load(), ready
}

// Waiting returns the sources that were not listed yet, sorted.
func (s *Store) Waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.waiting))
}

// Listed marks a source as listed: all its objects have been applied.
func (s *Store) Listed(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, source)
	s.ready.Store(len(s.waiting) == 0)
}

// Apply applies changes to the store, as one new view.
func (s *Store) Apply(changes ...Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view.Load()
	s.publish(v.With(changes...), s.eventsOf(v, changes)...)
}

// Replace makes the objects the only ones of a kind. It reports an Observation for each
// one that was deleted.
func (s *Store) Replace(kind api.PolicyKind, objects []Object) {
	s.mu.Lock()
	v := s.view.Load()
	changes, deleted := replacing(v, kind, objects)
	s.publish(v.With(changes...), s.eventsOf(v, changes)...)
	s.mu.Unlock()
	s.observeDeleted(deleted)
}

// replacing returns the changes that make the objects the only ones of a kind in a view,
// and observations of those that this deletes.
func replacing(v *View, kind api.PolicyKind, objects []Object) (changes []Change, deleted []Observation) {
	keep := make(map[api.Ref]bool, len(objects))
	changes = make([]Change, 0, len(objects))
	for _, o := range objects {
		keep[o.Ref()] = true
		changes = append(changes, Put(o))
	}
	for o := range v.Objects(kind) {
		if !keep[o.Ref()] {
			changes = append(changes, Delete(o.Ref()))
			deleted = append(deleted, Observation{Ref: o.Ref(), Deleted: true})
		}
	}
	return changes, deleted
}

func (s *Store) observeDeleted(deleted []Observation) {
	if len(deleted) > 0 {
		s.Observe(deleted...)
	}
}

// AddKind adds a policy kind. It is pending until KindListed: writes of it cannot be
// evaluated, all others can. If the kind is relisted, its policies stay in the view as
// they were decoded before: without them, a write of another kind could make their
// overrides ineffective. For the same reason, a kind that was never listed is among the
// view's Unlisted.
func (s *Store) AddKind(k *policykind.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setPending(k.Ref(), k)
	v := s.view.Load()
	if v.Kind(k.Ref()) == nil {
		s.publish(v.WithUnlisted(append(without(v.unlisted, k.Ref()), k)))
	}
}

// SetUnlisted removes a pending kind from the view's Unlisted: its policies do not count
// for writes of other kinds.
func (s *Store) SetUnlisted(ref api.PolicyKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view.Load()
	s.publish(v.WithUnlisted(without(v.unlisted, ref)))
}

// setPending makes a kind pending, or not pending if k is nil.
func (s *Store) setPending(ref api.PolicyKind, k *policykind.Kind) {
	next := maps.Clone(*s.pending.Load())
	if delete(next, ref); k != nil {
		next[ref] = k
	}
	s.pending.Store(&next)
}

// KindListed makes the policies the only ones of a kind, as Replace does. For a pending
// kind, it replaces the kind and its policies in one step: no view has policies of two
// versions of a kind.
func (s *Store) KindListed(ref api.PolicyKind, policies ...Object) {
	k := (*s.pending.Load())[ref]
	if k == nil {
		s.Replace(ref, policies)
		return
	}
	s.mu.Lock()
	v := s.view.Load()
	changes, deleted := replacing(v, ref, policies)
	next := v.WithKinds(append(without(v.kinds, ref), k)).With(changes...)
	s.publish(next, Event{Kinds: true})
	s.setPending(ref, nil) // now that the view has it
	s.mu.Unlock()
	s.Observe(deleted...) // even if there are none: the kind is not pending any more
}

// RemoveKind removes a policy kind and its policies.
func (s *Store) RemoveKind(ref api.PolicyKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view.Load()
	s.publish(v.WithKinds(without(v.kinds, ref)).WithUnlisted(without(v.unlisted, ref)), Event{Kinds: true})
	s.setPending(ref, nil)
}

// without returns a copy of the kinds without one.
func without(kinds []*policykind.Kind, ref api.PolicyKind) []*policykind.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k *policykind.Kind) bool { return k.Ref() == ref })
}

// Pending reports whether a policy kind was added and not listed yet.
func (s *Store) Pending(ref api.PolicyKind) bool { return (*s.pending.Load())[ref] != nil }

func (s *Store) publish(v *View, events ...Event) {
	v.version = s.reached.Load() // v is not shared yet
	s.notifyBefore(v, events)
	s.view.Store(v)
	s.notify(events)
}
