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

// target takes what a reflector reads.
type target[T any] interface {
	put(T)
	remove(cache.ObjectName)
	replace([]T)
}

// sink is what a reflector takes for a cache. It holds nothing: each object is
// decoded once and handed on.
type sink[T any] struct {
	decode  func(runtime.Object) (T, error)
	target  target[T]
	health *healthTracker
	log     logr.Logger
	// listed is called after each full list, unless the sink was closed.
	listed func()
	// seen is told what was seen, once the target has it.
	observer observer

	mu     sync.Mutex
	closed bool
}

var (
	_ cache.TransformingStore      = (*sink[snapshot.Object])(nil)
	_ cache.ReflectorBookmarkStore = (*sink[snapshot.Object])(nil)
)

// close returns when the last event has reached the target: its reflector may
// take a while to notice that it was stopped.
func (s *sink[T]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// open runs act unless the sink is closed, and reports whether it did.
func (s *sink[T]) ifOpen(act func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		act()
	}
	return !s.closed
}

// Add puts a new object.
func (s *sink[T]) Add(obj any) error { return s.Update(obj) }

// Update puts an object. One that cannot be read is taken out: its last state
// is not in force any more.
func (s *sink[T]) Update(obj any) error {
	s.health.recordEvent()
	d := s.decodeOnce(obj)
	s.ifOpen(func() {
		s.observer.reached(d.version)
		if d.ok {
			s.target.put(d.value)
		} else {
			s.target.remove(d.name)
		}
		s.observer.observed(d.objectState)
	})
	return nil
}

// Delete takes an object out.
func (s *sink[T]) Delete(obj any) error {
	s.health.recordEvent()
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return fmt.Errorf("name the deleted object: %w", err)
	}
	s.ifOpen(func() {
		was := stateOf(name, obj)
		s.observer.reached(was.version)
		s.target.remove(name)
		s.observer.deleted(was)
	})
	return nil
}

// Replace makes the objects the only ones.
func (s *sink[T]) Replace(objects []any, version string) error {
	values, origins := make([]T, 0, len(objects)), make([]objectState, 0, len(objects))
	for _, obj := range objects {
		d := s.decodeOnce(obj)
		if d.ok {
			values = append(values, d.value)
		}
		origins = append(origins, d.objectState)
	}
	replace := func() {
		s.observer.reached(version)
		s.target.replace(values)
		s.observer.observed(origins...)
	}
	kept := s.ifOpen(replace)
	if s.health.recordList() { // only now: before, the target had the old ones
		s.log.Info("watch recovered")
	}
	// listed may stop this very feed: it is called with no lock held.
	if kept {
		s.listed()
	}
	return nil
}

// Resync does nothing: there is nothing that the target does not have.
func (s *sink[T]) Resync() error { return nil }

// Bookmark is how a watch without events shows that it lives, about once a
// minute.
func (s *sink[T]) Bookmark(version string) error {
	s.health.recordEvent()
	s.ifOpen(func() { s.observer.passed(version) })
	return nil
}

// Transformer decodes the objects of a streamed list as they arrive, so that
// the list is never held in full.
func (s *sink[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		s.health.recordEvent()
		return s.decodeOnce(obj), nil
	}
}

// decoded is an object that went through the Transformer.
type decoded[T any] struct {
	value T
	ok    bool
	objectState
}

// read decodes an object unless the Transformer has done so. What cannot be
// read is logged here, since a reflector would log its content.
func (s *sink[T]) decodeOnce(obj any) decoded[T] {
	if d, done := obj.(decoded[T]); done {
		return d
	}
	name, err := cache.ObjectToName(obj)
	d := decoded[T]{objectState: stateOf(name, obj)}
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

// objects is the target of a kind in the store.
type objectTarget struct {
	store *snapshot.Store
	kind  api.PolicyKind
	// exempt is a namespace whose objects are left out.
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

// kindObjects is the target of a policy kind: its first list ends the wait for
// the kind, and puts it in force together with its policies.
type policyTarget struct{ objectTarget }

func (o policyTarget) replace(all []snapshot.Object) {
	o.store.KindListed(o.kind, slices.DeleteFunc(all, o.isExempt)...)
}

func (o objectTarget) remove(name cache.ObjectName) {
	o.store.Apply(snapshot.Delete(api.Ref{
		Group: o.kind.Group, Kind: o.kind.Kind, Namespace: name.Namespace, Name: name.Name,
	}))
}
