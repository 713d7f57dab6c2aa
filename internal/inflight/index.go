package inflight

import (
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// index finds entries by the objects that they can affect. The footprint of an entry is
// that of its write alone, in a view without any other write in flight: no other entry,
// nor its end, can change it. What several entries do together is followed by each
// lookup (related).
type index struct {
	touch, around byRef
	// traced are the entries that have a footprint, selecting those of them for which
	// effective.Footprint.Selects holds.
	traced, selecting entries
	// stale are the entries whose footprint is not traced in the current view yet.
	stale entries
}

// entries is a set of entries, byRef those that have an object in their footprint.
type (
	entries map[*entry]bool
	byRef   map[api.Ref]entries
)

func newIndex() index {
	return index{
		touch: make(byRef), around: make(byRef),
		traced: make(entries), selecting: make(entries), stale: make(entries),
	}
}

// remove removes an entry.
func (x *index) remove(e *entry) {
	for _, set := range []entries{x.traced, x.selecting, x.stale} {
		delete(set, e)
	}
	if e.footprint == nil {
		return
	}
	for ref := range e.footprint.Touched() {
		x.touch.remove(ref, e)
	}
	for ref := range e.footprint.Related() {
		x.around.remove(ref, e)
	}
}

// retrace traces the stale footprints in a view, and calls traced with each entry. What
// they had in earlier views stays: it is still related to writes that are evaluated on
// one of these.
func (x *index) retrace(v *snapshot.View, traced func(*entry)) {
	for e := range x.stale {
		f := e.write.footprint(v, v.With(e.write.changes()...))
		if e.footprint == nil {
			e.footprint = f
		} else {
			e.footprint.Join(f)
		}
		for ref := range f.Touched() {
			x.touch.add(ref, e)
		}
		for ref := range f.Related() {
			x.around.add(ref, e)
		}
		if x.traced[e] = true; f.Selects() {
			x.selecting[e] = true
		}
		traced(e)
	}
	clear(x.stale)
}

// maxEvents is the number of events that are followed one by one; after more at once, as
// from a list, all footprints are traced again.
const maxEvents = 64

// markStale marks the footprints that the events of the next view can make larger. An
// object that is removed makes none larger.
func (x *index) markStale(v *snapshot.View, events []snapshot.Event) {
	if len(x.traced) == 0 {
		return
	}
	for i, event := range events {
		switch {
		case event.Kinds || i == maxEvents:
			maps.Copy(x.stale, x.traced)
			return
		case event.After == nil || event.Before != nil && snapshot.Same(event.Before, event.After):
		case !effective.Links(event.After) && len(x.selecting) == 0:
		default:
			x.linked(effective.FootprintOf([]snapshot.Object{event.After}, v), func(e *entry) { x.stale[e] = true })
		}
	}
}

// passing visits the entries whose paths go through what a footprint touches.
func (x *index) passing(f *effective.Footprint, visit func(*entry)) {
	for ref := range f.Touched() {
		x.touch.each(ref, visit)
		x.around.each(ref, visit)
	}
}

// touching visits the entries that touch what a footprint has.
func (x *index) touching(f *effective.Footprint, visit func(*entry)) {
	for ref := range f.Touched() {
		x.touch.each(ref, visit)
	}
	for ref := range f.Related() {
		x.touch.each(ref, visit)
	}
}

// linked visits the entries whose footprints overlap with a footprint.
func (x *index) linked(f *effective.Footprint, visit func(*entry)) {
	x.passing(f, visit)
	x.touching(f, visit)
}

func (m byRef) each(ref api.Ref, visit func(*entry)) {
	for e := range m[ref] {
		visit(e)
	}
}

func (m byRef) add(ref api.Ref, e *entry) {
	if m[ref] == nil {
		m[ref] = make(entries)
	}
	m[ref][e] = true
}

func (m byRef) remove(ref api.Ref, e *entry) {
	if delete(m[ref], e); len(m[ref]) == 0 {
		delete(m, ref)
	}
}

// related returns the entries that can affect a path that a write affects, given its
// footprint, whichever of all entries are stored. One write can connect the paths of two
// others, or of another and this one: so it follows the entries that change the objects of
// which paths consist (effective.Footprint.Links), from each to what touches its objects.
// Two writes below an object that another one touches are not connected by that: so only
// from those above or below the write itself does it follow all that overlaps.
func (x *index) related(own *effective.Footprint) entries {
	if own.Selects() {
		return x.connected(own)
	}
	out := search(own, x.linked, (*effective.Footprint).Links, x.touching)
	maps.Copy(out, search(own, x.passing, (*effective.Footprint).Links, x.linked))
	if len(x.selecting) > 0 {
		for e := range x.connected(own) {
			if x.selecting[e] {
				out[e] = true
			}
		}
	}
	return out
}

// connected returns the entries that overlap with a footprint, and transitively those that
// overlap with them.
func (x *index) connected(f *effective.Footprint) entries {
	return search(f, x.linked, bounded, x.linked)
}

// bounded reports whether a change affects only some paths. The others overlap with all
// others anyway.
func bounded(f *effective.Footprint) bool { return !f.All() }

// step visits some of the entries that have to do with a footprint, some of them twice.
type step func(f *effective.Footprint, visit func(*entry))

// search returns the entries that first visits from a footprint, and transitively those
// that next visits from the footprints that are followed.
func search(from *effective.Footprint, first step, followed func(*effective.Footprint) bool, next step) entries {
	out := make(entries)
	var queue []*effective.Footprint
	visit := func(e *entry) {
		if !out[e] {
			out[e] = true
			queue = append(queue, e.footprint)
		}
	}
	for first(from, visit); len(queue) > 0; queue = queue[1:] {
		if followed(queue[0]) {
			next(queue[0], visit)
		}
	}
	return out
}

// groups divides entries into groups that are not connected, each in the order given.
func (x *index) groups(all []*entry) [][]*entry {
	if slices.ContainsFunc(all, func(e *entry) bool { return !bounded(e.footprint) }) {
		return [][]*entry{all}
	}
	at := make(map[*entry]int, len(all)) // the group of each entry
	var out [][]*entry
	for _, e := range all {
		i, found := at[e]
		if !found {
			i = len(out)
			out = append(out, nil)
			at[e] = i
			for o := range x.connected(e.footprint) {
				at[o] = i
			}
		}
		out[i] = append(out[i], e)
	}
	return out
}
