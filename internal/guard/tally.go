package guard

import (
	"maps"
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// tally has one entry for all paths on which the same is to be said: what their keys say. The
// first path of an entry stands for all.
type tally[K comparable, V any] struct {
	entries map[K]*V
	max     int  // entries, 0 for any number
	more    bool // there are more
}

// at returns the entry of a key: the given one if there is none yet, nil if there are too
// many.
func (t *tally[K, V]) at(key K, first V) *V {
	if known := t.entries[key]; known != nil {
		return known
	}
	if t.max > 0 && len(t.entries) == t.max {
		t.more = true
		return nil
	}
	entry := first // first itself is not to be allocated where the key is known
	put(&t.entries, key, &entry)
	return &entry
}

// sorted returns the entries in an order.
func (t *tally[K, V]) sorted(compare func(a, b *V) int) []*V {
	return slices.SortedFunc(maps.Values(t.entries), compare)
}

// set is a set that is mostly given the same element several times in a row.
type set[T comparable] struct {
	all  map[T]struct{}
	last T
}

func (s *set[T]) add(x T) {
	if s.all == nil || s.last != x {
		put(&s.all, x, struct{}{})
		s.last = x
	}
}

func (s *set[T]) count() int { return len(s.all) }

// hasOther reports whether an element other than one is in the set.
func (s *set[T]) hasOther(than T) bool {
	_, has := s.all[than]
	return len(s.all) > btoi(has)
}

// put sets an entry of a map, which is made with its first one.
func put[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = make(M)
	}
	(*m)[key] = value
}

// pathCounter counts paths, each once, unit by unit.
type pathCounter struct {
	counted int                     // of units before, and those that come once for certain
	unit    int                     // the current one
	ids     map[gateway.ID]struct{} // of it
}

// add counts the path of a pair. once is set if only one kind is counted: then each path
// comes once, unless it is one of a mesh, where several may become one.
func (p *pathCounter) add(pair *effective.Pair, once bool) {
	path := &pair.Effective().Path
	if once && path.Service == nil {
		p.counted++
		return
	}
	if p.unit != pair.Unit {
		p.counted += len(p.ids)
		clear(p.ids)
		p.unit = pair.Unit
	}
	put(&p.ids, path.ID(), struct{}{})
}

func (p *pathCounter) count() int { return p.counted + len(p.ids) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
