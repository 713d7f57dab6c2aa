package inflight

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// Defaults of Options.
const (
	DefaultKeep      = time.Minute
	DefaultMaxWrites = 4096
	DefaultMaxBytes  = 32 << 20
	DefaultMaxWait   = 200 * time.Millisecond
)

// Options of a Log.
type Options struct {
	// Keep is how long the API server may take to store a write that was
	// admitted: its --request-timeout; 0 means DefaultKeep. A write that is not
	// observed is dropped after that and the longest latency of those that were:
	// any earlier it may still be stored.
	Keep time.Duration
	// MaxWrites is how many writes are kept; 0 means DefaultMost. Each user, and each
	// namespace, has a share of them; beyond it, its writes that would have to
	// be kept are to be tried again.
	MaxWrites int
	// MaxBytes is how many bytes is kept of these writes together; 0 means
	// DefaultSize. It is shared likewise; but a write that is alone is kept
	// whatever its size.
	MaxBytes int64
	// MaxWait is how long a write waits for others to be seen where the
	// decision depends on them, at most half of the time that it has left; 0
	// means DefaultPatience, less than 0 none.
	MaxWait time.Duration
}

// Log is what was admitted and not seen yet. It is safe for concurrent use. A
// nil Log knows of nothing, and judges each write by itself.
type Log struct {
	Options
	// busy counts entries and judgements under way: what is seen while there
	// are none, as at the start, is of no interest.
	busy atomic.Int64

	mu         sync.Mutex
	seq        uint64   // of the newest entry
	entries    []*entry // by seq
	endedCount int      // of them
	endSeq     uint64   // counts entries that went
	shares     shares   // of those that did not
	index      index    // of all entries
	latency    latency
	readers    map[*reader]bool
	// named counts entries and judgements by the object.
	perObject map[api.Ref]int
	wake      chan struct{} // closed when an entry is gone
}

// entry is a write in the log.
type entry struct {
	pendingWrite
	seq        uint64
	admittedAt time.Time
	// gone is set once it was seen, or is too old: which end it is of all. It
	// stays as long as someone judges by a view that may be older.
	endedAt uint64

	growth effective.Growth
	links  bool
	// footprint is that of its write alone, in all views since it was traced
	// first; nil before.
	footprint *effective.Footprint
}

// bytes returns about what an entry takes.
func (e *entry) bytes() int64 {
	const ofName = 200 // in the footprint and the index
	return entryOverhead + e.Size + ofName*int64(e.footprint.Len())
}

// judging is a judgement under way.
type reader struct {
	ref api.Ref
	// since is the newest entry that it takes into account, and ends the last
	// end of one.
	since, endSeq uint64
	// seen of the object meanwhile: a write that the API server has stored
	// without waiting for us is not kept.
	observed []snapshot.Observation
}

// New returns an empty log that hears what is seen from a store, which must not
// be fed yet.
func New(s *snapshot.Store, o Options) *Log {
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	o.MaxWrites = cmp.Or(o.MaxWrites, DefaultMaxWrites)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxWait = cmp.Or(o.MaxWait, DefaultMaxWait)
	l := &Log{
		Options: o, shares: newShares(), index: newIndex(),
		readers: make(map[*reader]bool), perObject: make(map[api.Ref]int), wake: make(chan struct{}),
	}
	s.BeforeChange(l.updateIndex)
	s.Watch(l.observe)
	return l
}

// Len returns how many writes are in flight.
func (l *Log) Len() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	return len(l.entries) - l.endedCount
}

// next follows the events of the next view.
func (l *Log) updateIndex(v *snapshot.View, events []snapshot.Event) {
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index.markStale(v, events)
}

// saw takes out what was seen.
func (l *Log) observe(seen []snapshot.Observation) {
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	for _, s := range seen {
		if l.perObject[s.Ref] == 0 {
			continue
		}
		for _, e := range l.entries {
			if e.ref == s.Ref && e.endedAt == 0 && e.observedBy(s) {
				now := time.Now()
				l.latency.observe(now, now.Sub(e.admittedAt))
				l.end(e)
				changed = true
			}
		}
		for j := range l.readers {
			if j.ref == s.Ref {
				j.observed = append(j.observed, s)
			}
		}
	}
	if changed {
		l.notify()
	}
}

// end takes an entry out of what is in flight.
func (l *Log) end(e *entry) {
	l.endSeq++
	l.endedCount++
	e.endedAt = l.endSeq
	l.shares.remove(e.owner, e.cost)
}

// expire takes out what is too old.
func (l *Log) expire() {
	oldest, changed := time.Now().Add(-l.Keep-l.latency.bound()), false
	for _, e := range l.entries {
		if e.admittedAt.After(oldest) {
			break // the others are younger
		}
		if e.endedAt == 0 {
			l.end(e)
			changed = true
		}
	}
	if changed {
		l.notify()
	}
}

// settle wakes those who wait, and forgets the entries that nobody needs: those
// that are gone, and were so before every judgement under way took its view.
func (l *Log) notify() {
	close(l.wake)
	l.wake = make(chan struct{})
	l.prune()
}

func (l *Log) prune() {
	if l.endedCount == 0 {
		return
	}
	oldest := l.seq
	for j := range l.readers {
		oldest = min(oldest, j.since)
	}
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		if e.endedAt == 0 || e.seq > oldest {
			return false
		}
		l.countObject(e.ref, -1)
		l.index.remove(e)
		l.endedCount--
		return true
	})
}

func (l *Log) countObject(ref api.Ref, by int) {
	l.busy.Add(int64(by))
	if l.perObject[ref] += by; l.perObject[ref] == 0 {
		delete(l.perObject, ref)
	}
}

// begin books a judgement.
func (l *Log) begin(w Write) *reader {
	j := &reader{ref: w.Change.Object().Ref()}
	l.mu.Lock()
	defer l.mu.Unlock()
	j.since = l.seq
	l.readers[j] = true
	l.countObject(j.ref, 1)
	return j
}

func (l *Log) finish(j *reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, j)
	l.countObject(j.ref, -1)
	l.prune()
}

// look returns the view of now and, of what is in flight now, what the write
// meets. The view shows all that was in flight and is not any more.
func (l *Log) snapshot(t *evaluation, view func() *snapshot.View) (*snapshot.View, []*entry) {
	if l.busy.Load() > 1 {
		t.footprintIn(view()) // without the lock
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v := view() // under the lock, by which the index follows it
	l.expire()
	t.reader.since, t.reader.endSeq = l.seq, l.endSeq
	return v, l.related(t, v, v)
}

// met returns the entries of other objects that a write meets which is evaluated on
// a view, by seq, given the view of now. Those that went before the judgement
// looked are not among them.
func (l *Log) related(t *evaluation, now, judgedOn *snapshot.View) []*entry {
	if len(l.entries) == 0 {
		return nil
	}
	l.index.retrace(now, l.updateCost)
	var out []*entry
	for e := range l.index.related(t.footprintIn(judgedOn), t.growth) {
		if e.ref != t.reader.ref && (e.endedAt == 0 || e.endedAt > t.reader.endSeq) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// weigh counts what the footprint of an entry takes.
func (l *Log) updateCost(e *entry) {
	was := e.cost
	e.cost.bytes = e.bytes()
	if e.endedAt == 0 {
		l.shares.remove(e.owner, was)
		l.shares.add(e.owner, e.cost)
	}
}

// admission is the result of an attempt to book a write.
type admission int

const (
	// booked: it is in flight, or nothing has to be kept of it.
	admitted admission = iota
	// overtaken: it meets more than it was judged with.
	stale
	// full: its owner has as much in flight as its share is.
	quotaExceeded
)

// book books a write, unless it meets more by now than it was judged with.
func (l *Log) admit(t *evaluation, view func() *snapshot.View, judgedOn *snapshot.View, met []*entry, f pendingWrite) admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	v := view()
	for _, e := range l.related(t, v, judgedOn) {
		if !slices.Contains(met, e) {
			return stale
		}
	}
	f.owner = f.ownerIn(v)
	switch {
	case slices.ContainsFunc(t.reader.observed, f.observedBy), l.alreadyExists(f, v):
	case !l.shares.admits(f.owner, f.cost, usage{l.MaxWrites, l.MaxBytes}):
		return quotaExceeded
	default:
		l.seq++
		e := &entry{pendingWrite: f, seq: l.seq, admittedAt: time.Now(), growth: t.growth, links: effective.Links(f.Change.Object())}
		l.entries = append(l.entries, e)
		l.index.add(e)
		l.shares.add(e.owner, e.cost)
		l.countObject(f.ref, 1)
	}
	return admitted
}

// refused reports whether the API server will refuse a write, since it creates
// what exists and does not go at this moment. A name that is generated is
// generated again then.
func (l *Log) alreadyExists(f pendingWrite, v *snapshot.View) bool {
	if f.Change.Operation != guard.Create || f.Generated || v.Get(f.ref) == nil {
		return false
	}
	return !slices.ContainsFunc(l.entries, func(e *entry) bool { return e.endedAt == 0 && e.ref == f.ref && e.removes() })
}

// goneFrom returns how many of the entries are gone, and a channel that is
// closed when any entry is.
func (l *Log) countEnded(entries []*entry) (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	n := 0
	for _, e := range entries {
		if e.endedAt > 0 {
			n++
		}
	}
	return n, l.wake
}
