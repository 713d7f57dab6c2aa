package cache

import (
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// target receives what a reflector reads.
type target interface {
	put(snapshot.Object)
	remove(api.Ref)
	replace([]snapshot.Object)
}

// sink is the store of a client-go reflector. It holds no objects: each is decoded once
// and passed on to the target, and then reported to the store.
type sink struct {
	store  *snapshot.Store
	kind   api.PolicyKind
	decode decoder
	target target
	health *healthTracker
	log    logr.Logger
	// listed is called after each full list, unless the sink was closed.
	listed func()

	mu     sync.Mutex
	closed bool
}

var (
	_ cache.TransformingStore      = (*sink)(nil)
	_ cache.ReflectorBookmarkStore = (*sink)(nil)
)

// close returns after the last event has reached the target: a reflector may take a
// while to stop.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// ifOpen runs act unless the sink is closed, and reports whether it did.
func (s *sink) ifOpen(act func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		act()
	}
	return !s.closed
}

// Add adds a new object.
func (s *sink) Add(obj any) error {
	s.put(obj, 1)
	return nil
}

// Update updates an object.
func (s *sink) Update(obj any) error {
	s.put(obj, 0)
	return nil
}

// put puts an object, which is a new one if added is 1. One that cannot be read is
// removed: its previous state is not in force any more. The store is told the
// resourceVersion before it receives the object, and what was read once the target has it.
func (s *sink) put(obj any, added int) {
	d := s.decodeOnce(obj)
	s.ifOpen(func() {
		s.store.Reached(d.Version)
		if d.ok {
			s.target.put(d.value)
		} else {
			s.target.remove(d.Ref)
		}
		s.store.Observe(d.Observation)
	})
	s.health.recordEvent(d.Version, added)
}

// Delete removes an object.
func (s *sink) Delete(obj any) error {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return fmt.Errorf("name the deleted object: %w", err)
	}
	state := s.stateOf(name, obj)
	state.Deleted = true
	s.ifOpen(func() {
		s.store.Reached(state.Version)
		s.target.remove(state.Ref)
		s.store.Observe(state)
	})
	s.health.recordEvent(state.Version, -1)
	return nil
}

// Replace replaces all objects.
func (s *sink) Replace(objects []any, version string) error {
	values, origins := make([]snapshot.Object, 0, len(objects)), make([]snapshot.Observation, 0, len(objects))
	for _, obj := range objects {
		d := s.decodeOnce(obj)
		if d.ok {
			values = append(values, d.value)
		}
		origins = append(origins, d.Observation)
	}
	replace := func() {
		s.store.Reached(version)
		s.target.replace(values)
		s.store.Observe(origins...)
	}
	kept := s.ifOpen(replace)
	if s.health.recordList(version, len(objects)) { // only now does the target have the new objects
		s.log.Info("watch recovered")
	}
	// listed may stop this reflector, so no lock may be held.
	if kept {
		s.listed()
	}
	return nil
}

// Resync does nothing: the target has all objects.
func (s *sink) Resync() error { return nil }

// Bookmark records that a watch without events is alive, about once a minute.
func (s *sink) Bookmark(version string) error {
	s.ifOpen(func() { s.store.Passed(version) })
	s.health.recordEvent(version, 0)
	return nil
}

// Transformer decodes the objects of a streaming list as they arrive, so that the raw
// list is never held in full.
func (s *sink) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		s.health.recordContact()
		return s.decodeOnce(obj), nil
	}
}

// decoded is an object after the Transformer.
type decoded struct {
	value snapshot.Object
	ok    bool
	snapshot.Observation
}

// decodeOnce decodes an object unless the Transformer has done so. Errors are logged
// here, since client-go would log the content of the object.
func (s *sink) decodeOnce(obj any) decoded {
	if d, done := obj.(decoded); done {
		return d
	}
	name, err := cache.ObjectToName(obj)
	d := decoded{Observation: s.stateOf(name, obj)}
	if err == nil {
		o, _ := obj.(runtime.Object)
		d.value, err = s.decode(o)
	}
	if err != nil {
		s.log.Error(err, "cannot read object; treating it as absent", "object", name.String())
	}
	d.ok = err == nil
	return d
}

// objectTarget stores the objects of a kind.
type objectTarget struct {
	store *snapshot.Store
	kind  api.PolicyKind
	// exempt is a namespace whose objects are ignored.
	exempt string
}

func (o objectTarget) put(obj snapshot.Object) {
	if !o.isExempt(obj) {
		o.store.Apply(snapshot.Put(obj))
	}
}

func (o objectTarget) replace(all []snapshot.Object) {
	o.store.Replace(o.kind, slices.DeleteFunc(all, o.isExempt))
}

func (o objectTarget) isExempt(obj snapshot.Object) bool {
	return o.exempt != "" && obj.Ref().Namespace == o.exempt
}

// policyTarget stores the policies of a kind. The first list puts the kind in force
// together with its policies.
type policyTarget struct{ objectTarget }

func (t policyTarget) replace(all []snapshot.Object) {
	t.store.KindListed(t.kind, slices.DeleteFunc(all, t.isExempt)...)
}

func (o objectTarget) remove(ref api.Ref) { o.store.Apply(snapshot.Delete(ref)) }
