package inflight

import (
	"iter"
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
	touch, around map[api.Ref]map[*entry]bool
	// all are the entries that can affect any path, selecting those whose footprint
	// touches what others do (effective.GrowsTouch).
	all, selecting map[*entry]bool
	// stale are the entries whose footprint is not traced in the current view yet.
	stale map[*entry]bool
	// traced are the entries that have a footprint.
	traced map[*entry]bool
}

func newIndex() index {
	return index{
		touch: make(map[api.Ref]map[*entry]bool), around: make(map[api.Ref]map[*entry]bool),
		all: make(map[*entry]bool), selecting: make(map[*entry]bool), stale: make(map[*entry]bool), traced: make(map[*entry]bool),
	}
}

// add adds an entry, whose footprint is traced when it is first needed.
func (x *index) add(e *entry) {
	x.stale[e] = true
	if e.growth == effective.GrowsTouched {
		x.selecting[e] = true
	}
}

// remove removes an entry.
func (x *index) remove(e *entry) {
	for _, set := range []map[*entry]bool{x.all, x.selecting, x.stale, x.traced} {
		delete(set, e)
	}
	if e.footprint == nil {
		return
	}
	for ref := range e.footprint.Touched() {
		discard(x.touch, ref, e)
	}
	for ref := range e.footprint.Related() {
		discard(x.around, ref, e)
	}
}

// retrace traces the stale footprints in a view, and calls traced with each entry. What
// they had in earlier views stays: it is still related to writes that are evaluated on
// one of these.
func (x *index) retrace(v *snapshot.View, traced func(*entry)) {
	for e := range x.stale {
		f := e.pending.write.footprint(v, v.With(e.pending.write.changes()...))
		if e.footprint == nil {
			e.footprint = f
		} else {
			e.footprint.Join(f)
		}
		for ref := range f.Touched() {
			include(x.touch, ref, e)
		}
		for ref := range f.Related() {
			include(x.around, ref, e)
		}
		if f.All() {
			x.all[e] = true
		}
		x.traced[e] = true
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
			x.markAllStale()
			return
		case event.After == nil || event.Before != nil && snapshot.Same(event.Before, event.After):
		case !effective.Links(event.After) && len(x.selecting) == 0:
		default:
			for e := range x.linked(effective.FootprintOf([]snapshot.Object{event.After}, v)) {
				x.stale[e] = true
			}
		}
	}
}

func (x *index) markAllStale() {
	for e := range x.traced {
		x.stale[e] = true
	}
}

// linked yields the entries whose footprints meet a footprint, some of them twice.
func (x *index) linked(f *effective.Footprint) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		if f.All() {
			each(x.traced, yield)
			return
		}
		if !each(x.all, yield) {
			return
		}
		for ref := range f.Touched() {
			if !each(x.touch[ref], yield) || !each(x.around[ref], yield) {
				return
			}
		}
		for ref := range f.Related() {
			if !each(x.touch[ref], yield) {
				return
			}
		}
	}
}

// each yields entries, and reports whether to continue.
func each(entries map[*entry]bool, yield func(*entry) bool) bool {
	for e := range entries {
		if !yield(e) {
			return false
		}
	}
	return true
}

func include(m map[api.Ref]map[*entry]bool, ref api.Ref, e *entry) {
	if m[ref] == nil {
		m[ref] = make(map[*entry]bool)
	}
	m[ref][e] = true
}

func discard(m map[api.Ref]map[*entry]bool, ref api.Ref, e *entry) {
	if delete(m[ref], e); len(m[ref]) == 0 {
		delete(m, ref)
	}
}

// related returns the entries that can affect a path that a write affects, given its
// footprint and growth, whichever of all entries are stored. One write can connect the
// paths of two others, or of another and this one: so it follows the entries that change
// the objects of which paths consist (effective.Links).
func (x *index) related(own *effective.Footprint, growth effective.Growth) map[*entry]bool {
	out := make(map[*entry]bool)
	grown := x.extended(own, growth)
	for e := range x.linked(grown) {
		out[e] = true
	}
	for e := range x.above(grown) {
		out[e] = true
	}
	if len(x.selecting) == 0 {
		return out
	}
	for e := range search(x.linked(grown), (*entry).bounded, x.linked) {
		if x.selecting[e] {
			out[e] = true
		}
	}
	return out
}

// extended returns a footprint with all that entries can add to it.
func (x *index) extended(own *effective.Footprint, growth effective.Growth) *effective.Footprint {
	if own.All() {
		return own
	}
	follows, next := (*entry).linking, x.touching
	if growth == effective.GrowsTouched {
		follows, next = (*entry).bounded, x.linked
	}
	out := own.Clone()
	for e := range search(x.linked(own), follows, next) {
		if !follows(e) {
			continue
		}
		if out.AddRelated(e.footprint); growth == effective.GrowsTouched {
			out.AddTouched(e.footprint)
		}
	}
	return out
}

// above returns the entries that others connect to what a footprint touches: they are
// linked to one that goes through it.
func (x *index) above(f *effective.Footprint) map[*entry]bool {
	through := func(yield func(*entry) bool) {
		for ref := range f.Touched() {
			if !each(x.touch[ref], yield) || !each(x.around[ref], yield) {
				return
			}
		}
	}
	return search(through, (*entry).linking, x.linked)
}

// linking reports whether an entry makes the footprints of others larger.
func (e *entry) linking() bool { return e.links && e.bounded() }

// bounded reports whether an entry affects only some paths: the others are related to
// everything anyway.
func (e *entry) bounded() bool { return !e.footprint.All() }

// touching yields the entries that touch what a footprint touches or has around it.
func (x *index) touching(f *effective.Footprint) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for ref := range f.Touched() {
			if !each(x.touch[ref], yield) {
				return
			}
		}
		for ref := range f.Related() {
			if !each(x.touch[ref], yield) {
				return
			}
		}
	}
}

// search returns the entries of start, and transitively those that next yields for the
// ones that are followed.
func search(start iter.Seq[*entry], followed func(*entry) bool, next func(*effective.Footprint) iter.Seq[*entry]) map[*entry]bool {
	out := make(map[*entry]bool)
	var queue []*entry
	for e := range start {
		if !out[e] {
			out[e] = true
			queue = append(queue, e)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if !followed(queue[0]) {
			continue
		}
		for e := range next(queue[0].footprint) {
			if !out[e] {
				out[e] = true
				queue = append(queue, e)
			}
		}
	}
	return out
}

// groups divides entries into groups that are not connected, each in the order given.
func (x *index) groups(entries []*entry) [][]*entry {
	if slices.ContainsFunc(entries, func(e *entry) bool { return !e.bounded() }) {
		return [][]*entry{entries}
	}
	at := make(map[*entry]int, len(entries)) // the group of each entry
	var out [][]*entry
	for _, e := range entries {
		i, found := at[e]
		if !found {
			i = len(out)
			out = append(out, nil)
			at[e] = i
			for o := range search(x.linked(e.footprint), (*entry).bounded, x.linked) {
				at[o] = i
			}
		}
		out[i] = append(out[i], e)
	}
	return out
}
