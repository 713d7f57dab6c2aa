package flight

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/store"
)

// Defaults of Options.
const (
	DefaultKeep     = time.Minute
	DefaultMost     = 4096
	DefaultSize     = 32 << 20
	DefaultPatience = 200 * time.Millisecond
)

// Options of a Log.
type Options struct {
	// Keep is how long a write is kept that is not seen; 0 means DefaultKeep.
	// One that was never stored is forgotten then.
	Keep time.Duration
	// Most is how many writes are kept; 0 means DefaultMost. Beyond it, writes
	// that would have to be kept are to be tried again.
	Most int
	// Size is how many bytes the objects of these writes had together; 0 means
	// DefaultSize. What is kept of them takes a few times as much. Beyond it,
	// likewise; but a write that is alone is kept whatever its size.
	Size int64
	// Patience is how long a write waits for others to be seen where the
	// decision depends on them, at most half of the time that it has left; 0
	// means DefaultPatience, less than 0 none.
	Patience time.Duration
	// Now is the clock by which writes are kept; nil means time.Now.
	Now func() time.Time
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
	size    int64    // of the entries
	judging map[*judging]bool
	// named counts entries and judgements by the object.
	named map[api.Ref]int
	wake  chan struct{} // closed when an entry is gone
}

// entry is a write in the log.
type entry struct {
	flown
	seq   uint64
	until time.Time
	// gone tells that it was seen, or is too old. It stays as long as someone
	// judges by a view that may be older.
	gone bool

	traced atomic.Pointer[traced]
}

// traced is where an entry may meet others, as long as nothing else changes.
type traced struct {
	view *store.View
	seq  uint64
	*effective.Footprint
}

// judging is a judgement under way.
type judging struct {
	ref api.Ref
	// since is the newest entry that it takes into account.
	since uint64
	// seen of the object meanwhile: a write that the API server has stored
	// without waiting for us is not kept.
	seen []store.Seen
}

// New returns an empty log that hears what is seen from a store, which must not
// be fed yet.
func New(s *store.Store, o Options) *Log {
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	o.Most = cmp.Or(o.Most, DefaultMost)
	o.Size = cmp.Or(o.Size, DefaultSize)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{Options: o, judging: make(map[*judging]bool), named: make(map[api.Ref]int), wake: make(chan struct{})}
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
	n := 0
	for _, e := range l.entries {
		n += btoi(!e.gone)
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// saw takes out what was seen.
func (l *Log) saw(seen []store.Seen) {
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
			if e.ref == s.Ref && !e.gone && e.seenBy(s) {
				e.gone, changed = true, true
				l.gone++
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

// expire takes out what is too old.
func (l *Log) expire() {
	now, changed := l.Now(), false
	for _, e := range l.entries {
		if now.Before(e.until) {
			break // the others are younger
		}
		if !e.gone {
			e.gone, changed = true, true
			l.gone++
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
		if !e.gone || e.seq > oldest {
			return false
		}
		l.name(e.ref, -1)
		l.size -= e.Size
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

func (l *Log) end(j *judging) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.judging, j)
	l.name(j.ref, -1)
	l.forget()
}

// look returns what is in flight now, of other objects. A view that is taken
// after it shows whatever is not among them.
func (l *Log) look(j *judging) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	j.since = l.seq
	var out []*entry
	for _, e := range l.entries {
		if !e.gone && e.ref != j.ref {
			out = append(out, e)
		}
	}
	return out
}

// admission is what came of an attempt to book a write.
type admission struct {
	// added are the entries that came since the judgement looked, of other
	// objects. Nothing is booked if there are some.
	added []*entry
	// full tells that nothing is booked because too much is: that many writes.
	full int
}

// admit books a write, unless something was added since the judgement looked.
// It then counts as having been looked at.
func (l *Log) admit(j *judging, f flown) admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	var a admission
	for _, e := range l.entries {
		if e.seq > j.since && e.ref != j.ref {
			a.added = append(a.added, e)
		}
	}
	j.since = l.seq
	switch {
	case len(a.added) > 0:
	case slices.ContainsFunc(j.seen, f.seenBy):
	case l.full(f.Size):
		a.full = len(l.entries)
	default:
		l.seq++
		l.size += f.Size
		l.entries = append(l.entries, &entry{flown: f, seq: l.seq, until: l.Now().Add(l.Keep)})
		l.name(f.ref, 1)
	}
	return a
}

// full reports whether there is no room for a write of a size.
func (l *Log) full(size int64) bool {
	n := len(l.entries)
	return n >= l.Most || n > 0 && l.size+size > l.Size
}

// goneFrom returns how many of the entries are gone, and a channel that is
// closed when any entry is.
func (l *Log) goneFrom(entries []*entry) (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	n := 0
	for _, e := range entries {
		n += btoi(e.gone)
	}
	return n, l.wake
}
