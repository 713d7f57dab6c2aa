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

	mu      sync.Mutex
	seq     uint64   // of the newest entry
	entries []*entry // by seq
	gone    int      // of them
	ends    uint64   // counts entries that went
	shares  shares   // of those that did not
	index   index    // of all entries
	latency latency
	judging map[*judging]bool
	// named counts entries and judgements by the object.
	named map[api.Ref]int
	wake  chan struct{} // closed when an entry is gone
}

// entry is a write in the log.
type entry struct {
	flown
	seq uint64
	at  time.Time
	// gone is set once it was seen, or is too old: which end it is of all. It
	// stays as long as someone judges by a view that may be older.
	gone uint64

	growth effective.Growth
	links  bool
	// footprint is that of its write alone, in all views since it was traced
	// first; nil before.
	footprint *effective.Footprint
}

// bytes returns about what an entry takes.
func (e *entry) bytes() int64 {
	const ofName = 200 // in the footprint and the index
	return overhead + e.Size + ofName*int64(e.footprint.Len())
}

// judging is a judgement under way.
type judging struct {
	ref api.Ref
	// since is the newest entry that it takes into account, and ends the last
	// end of one.
	since, ends uint64
	// seen of the object meanwhile: a write that the API server has stored
	// without waiting for us is not kept.
	seen []snapshot.Observation
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
		judging: make(map[*judging]bool), named: make(map[api.Ref]int), wake: make(chan struct{}),
	}
	s.BeforeChange(l.next)
	s.Watch(l.saw)
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
	return len(l.entries) - l.gone
}

// next follows the events of the next view.
func (l *Log) next(v *snapshot.View, events []snapshot.Event) {
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index.changed(v, events)
}

// saw takes out what was seen.
func (l *Log) saw(seen []snapshot.Observation) {
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	for _, s := range seen {
		if l.named[s.Ref] == 0 {
			continue
		}
		for _, e := range l.entries {
			if e.ref == s.Ref && e.gone == 0 && e.seenBy(s) {
				now := time.Now()
				l.latency.observe(now, now.Sub(e.at))
				l.end(e)
				changed = true
			}
		}
		for j := range l.judging {
			if j.ref == s.Ref {
				j.seen = append(j.seen, s)
			}
		}
	}
	if changed {
		l.settle()
	}
}

// end takes an entry out of what is in flight.
func (l *Log) end(e *entry) {
	l.ends++
	l.gone++
	e.gone = l.ends
	l.shares.drop(e.owner, e.cost)
}

// expire takes out what is too old.
func (l *Log) expire() {
	oldest, changed := time.Now().Add(-l.Keep-l.latency.bound()), false
	for _, e := range l.entries {
		if e.at.After(oldest) {
			break // the others are younger
		}
		if e.gone == 0 {
			l.end(e)
			changed = true
		}
	}
	if changed {
		l.settle()
	}
}

// settle wakes those who wait, and forgets the entries that nobody needs: those
// that are gone, and were so before every judgement under way took its view.
func (l *Log) settle() {
	close(l.wake)
	l.wake = make(chan struct{})
	l.forget()
}

func (l *Log) forget() {
	if l.gone == 0 {
		return
	}
	oldest := l.seq
	for j := range l.judging {
		oldest = min(oldest, j.since)
	}
	l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
		if e.gone == 0 || e.seq > oldest {
			return false
		}
		l.name(e.ref, -1)
		l.index.drop(e)
		l.gone--
		return true
	})
}

func (l *Log) name(ref api.Ref, by int) {
	l.busy.Add(int64(by))
	if l.named[ref] += by; l.named[ref] == 0 {
		delete(l.named, ref)
	}
}

// begin books a judgement.
func (l *Log) begin(w Write) *judging {
	j := &judging{ref: w.Change.Object().Ref()}
	l.mu.Lock()
	defer l.mu.Unlock()
	j.since = l.seq
	l.judging[j] = true
	l.name(j.ref, 1)
	return j
}

func (l *Log) finish(j *judging) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.judging, j)
	l.name(j.ref, -1)
	l.forget()
}

// look returns the view of now and, of what is in flight now, what the write
// meets. The view shows all that was in flight and is not any more.
func (l *Log) look(t *trial, view func() *snapshot.View) (*snapshot.View, []*entry) {
	if l.busy.Load() > 1 {
		t.footprintIn(view()) // without the lock
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v := view() // under the lock, by which the index follows it
	l.expire()
	t.judging.since, t.judging.ends = l.seq, l.ends
	return v, l.met(t, v, v)
}

// met returns the entries of other objects that a write meets which is evaluated on
// a view, by seq, given the view of now. Those that went before the judgement
// looked are not among them.
func (l *Log) met(t *trial, now, judgedOn *snapshot.View) []*entry {
	if len(l.entries) == 0 {
		return nil
	}
	l.index.refresh(now, l.weigh)
	var out []*entry
	for e := range l.index.meeting(t.footprintIn(judgedOn), t.growth) {
		if e.ref != t.judging.ref && (e.gone == 0 || e.gone > t.judging.ends) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// weigh counts what the footprint of an entry takes.
func (l *Log) weigh(e *entry) {
	was := e.cost
	e.cost.bytes = e.bytes()
	if e.gone == 0 {
		l.shares.drop(e.owner, was)
		l.shares.add(e.owner, e.cost)
	}
}

// admission is the result of an attempt to book a write.
type admission int

const (
	// booked: it is in flight, or nothing has to be kept of it.
	booked admission = iota
	// overtaken: it meets more than it was judged with.
	overtaken
	// full: its owner has as much in flight as its share is.
	full
)

// book books a write, unless it meets more by now than it was judged with.
func (l *Log) book(t *trial, view func() *snapshot.View, judgedOn *snapshot.View, met []*entry, f flown) admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	v := view()
	for _, e := range l.met(t, v, judgedOn) {
		if !slices.Contains(met, e) {
			return overtaken
		}
	}
	f.owner = f.ownerIn(v)
	switch {
	case slices.ContainsFunc(t.judging.seen, f.seenBy), l.refused(f, v):
	case !l.shares.admits(f.owner, f.cost, usage{l.MaxWrites, l.MaxBytes}):
		return full
	default:
		l.seq++
		e := &entry{flown: f, seq: l.seq, at: time.Now(), growth: t.growth, links: effective.Links(f.Change.Object())}
		l.entries = append(l.entries, e)
		l.index.add(e)
		l.shares.add(e.owner, e.cost)
		l.name(f.ref, 1)
	}
	return booked
}

// refused reports whether the API server will refuse a write, since it creates
// what exists and does not go at this moment. A name that is generated is
// generated again then.
func (l *Log) refused(f flown, v *snapshot.View) bool {
	if f.Change.Operation != guard.Create || f.Generated || v.Get(f.ref) == nil {
		return false
	}
	return !slices.ContainsFunc(l.entries, func(e *entry) bool { return e.gone == 0 && e.ref == f.ref && e.removes() })
}

// goneFrom returns how many of the entries are gone, and a channel that is
// closed when any entry is.
func (l *Log) goneFrom(entries []*entry) (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	n := 0
	for _, e := range entries {
		if e.gone > 0 {
			n++
		}
	}
	return n, l.wake
}
