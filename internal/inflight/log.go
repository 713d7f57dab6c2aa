package inflight

import (
	"cmp"
	"context"
	"errors"
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
	DefaultMaxWrites = 4096
	DefaultMaxBytes  = 32 << 20
	DefaultMaxWait   = 200 * time.Millisecond
)

// Options of a Log.
type Options struct {
	// RequestTimeout is how long the API server may take to store an admitted write: its
	// --request-timeout; 0 means DefaultRequestTimeout. A write that is not observed can
	// expire after that time plus the maximum latency of observed writes: until then it
	// may still be stored.
	RequestTimeout time.Duration
	// ReadStored reads an object from the API server, as it is stored at that moment.
	// Deleted is set if it does not exist; the observation is zero if its kind is not
	// watched. Start calls it before a write expires.
	//
	// Without it, writes expire by time alone. That is not enough: a watch can be silent
	// for minutes before the cache counts as stale, so a write may be stored, not in the
	// cache, and expire.
	ReadStored func(ctx context.Context, ref api.Ref) (snapshot.Observation, error)
	// MaxWrites is the number of writes that are tracked; 0 means DefaultMaxWrites.
	// Each user, and each namespace, has a share of them; writes beyond it are denied
	// with a retry.
	MaxWrites int
	// MaxBytes is the memory for these writes together; 0 means DefaultMaxBytes. It is
	// shared likewise; but a write that is alone is tracked whatever its size.
	MaxBytes int64
	// MaxWait is how long a write waits for the observation of others if the decision
	// depends on them, at most half of its remaining time; 0 means DefaultMaxWait,
	// less than 0 none.
	MaxWait time.Duration
}

// Log tracks the writes in flight. It is safe for concurrent use. A nil Log tracks
// nothing, and evaluates each write alone.
type Log struct {
	// mu is the lock of what is tracked.
	mu sync.Mutex
	tracked
}

// tracked is what a Log has under its lock.
type tracked struct {
	Options Options
	// busy counts entries and running evaluations: observations while there are none, as at the
	// start, are ignored.
	busy atomic.Int64

	seq        uint64   // of the newest entry
	entries    []*entry // by seq, and by admittedAt
	endedCount int      // ended entries in entries
	// relisting are entries that were observed, of objects that define a policy kind which
	// is pending: until its policies are listed again, writes that are related to them
	// cannot be evaluated.
	relisting []*entry
	endSeq    uint64 // of the last end of an entry
	shares    shares // of the entries that have not ended
	index     index  // of all entries
	latency   latency
	running   map[*evaluation]bool
	perObject map[api.Ref]int // entries and running evaluations
	wake      chan struct{}   // closed when an entry ends
	// pending reports whether a policy kind is being listed. It takes no lock.
	pending  func(api.PolicyKind) bool
	expiring chan struct{} // has a token when an entry is due
}

// New returns an empty log that receives observations from a store, which must not be
// fed yet.
func New(s *snapshot.Store, o Options) *Log {
	o.RequestTimeout = cmp.Or(o.RequestTimeout, DefaultRequestTimeout)
	o.MaxWrites = cmp.Or(o.MaxWrites, DefaultMaxWrites)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxWait = cmp.Or(o.MaxWait, DefaultMaxWait)
	l := &Log{tracked: tracked{
		Options: o, shares: newShares(), index: newIndex(),
		running: make(map[*evaluation]bool), perObject: make(map[api.Ref]int), wake: make(chan struct{}), expiring: make(chan struct{}, 1),
		pending: s.Pending,
	}}
	s.BeforeChange(l.updateIndex)
	s.Watch(l.Observe)
	return l
}

// Len returns the number of writes in flight.
func (l *Log) Len() int {
	if l == nil {
		return 0
	}
	n, _ := l.inFlight()
	return n
}

// inFlight returns the number of writes in flight, and a channel that is closed when any
// entry ends.
func (l *Log) inFlight() (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	return len(l.entries) - l.endedCount, l.wake
}

// updateIndex updates the index for the next view.
func (l *Log) updateIndex(v *snapshot.View, events []snapshot.Event) {
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index.markStale(v, events)
}

// Observe ends the entries that were observed. The view must include what was observed;
// the store calls it for all that it receives.
//
// Entries that were imported can be older than the last event of their object. For them,
// a replica that begins to evaluate calls it with all that a list shows, and with an
// observation without a uid (snapshot.Observation) for each object of Refs that the list
// does not have. The list must be consistent, and later than the Import. What does not
// exist then was not updated or deleted meanwhile by a write that is in flight, and
// cannot be any more: such entries end. A creation may still be stored, and stays.
func (l *Log) Observe(observations []snapshot.Observation) {
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endRelisted()
	changed := false
	for _, o := range observations {
		if l.perObject[o.Ref] == 0 {
			continue
		}
		for _, e := range l.entries {
			if e.ref == o.Ref && e.endedAt == 0 && e.observedBy(o) {
				changed = l.endObserved(e) || changed
			}
		}
		for r := range l.running {
			if r.ref == o.Ref {
				r.observed = append(r.observed, o)
			}
		}
	}
	if changed {
		l.notify()
	}
}

// maxRelisting is how long an entry stays in relisting. A kind that cannot be listed for
// longer must not block the writes of all others: its policies then count as they were
// decoded before, and its own writes are not evaluated.
const maxRelisting = 2 * time.Second

// endObserved ends an entry that was observed, unless it is kept in relisting. It reports
// whether it did.
func (l *tracked) endObserved(e *entry) bool {
	now := time.Now()
	if e.observedAt.IsZero() {
		e.observedAt = now
	}
	if now.Sub(e.observedAt) < maxRelisting && slices.ContainsFunc(e.write.definedKinds(), l.pending) {
		if !slices.Contains(l.relisting, e) {
			l.relisting = append(l.relisting, e)
		}
		return false
	}
	l.latency.observe(now, now.Sub(e.admittedAt))
	l.end(e)
	return true
}

// blocking returns those of some entries together with which a write cannot be evaluated:
// those in relisting, since neither the view nor the configuration of its kinds is that
// before or after them, and those that change how the other one's policy is decoded.
func (l *Log) blocking(w Write, entries []*entry) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*entry
	for _, e := range entries {
		if slices.Contains(l.relisting, e) || w.changesReading(e.write) || e.write.changesReading(w) {
			out = append(out, e)
		}
	}
	return out
}

// endRelisted ends the entries whose kinds have been listed again. The caller takes the
// view after it.
func (l *tracked) endRelisted() {
	if len(l.relisting) == 0 {
		return
	}
	waiting := l.relisting
	l.relisting = nil
	for _, e := range waiting {
		if e.endedAt == 0 {
			l.endObserved(e)
		}
	}
	if len(l.relisting) < len(waiting) {
		l.notify()
	}
}

// expire ends the entries that the API server cannot store any more and has not stored.
// If Start has to find out, they end a moment later.
func (l *tracked) expire() {
	l.endRelisted()
	due := l.due()
	switch {
	case len(due) == 0:
	case l.Options.ReadStored == nil:
		for _, e := range due {
			l.end(e)
		}
		l.notify()
	default:
		select {
		case l.expiring <- struct{}{}:
		default:
		}
	}
}

// due returns the entries that the API server cannot store any more, unless they were
// checked a short time ago.
func (l *tracked) due() []*entry {
	now := time.Now()
	oldest := now.Add(-l.Options.RequestTimeout - l.latency.bound())
	var out []*entry
	for _, e := range l.entries {
		if e.admittedAt.After(oldest) {
			break // the others are newer
		}
		if e.endedAt == 0 && !e.checkAfter.After(now) {
			out = append(out, e)
		}
	}
	return out
}

// end marks an entry as not in flight any more.
func (l *tracked) end(e *entry) {
	l.endSeq++
	l.endedCount++
	e.endedAt = l.endSeq
	l.shares.remove(e.owner, e.cost)
}

// notify wakes the evaluations that wait, and prunes.
func (l *tracked) notify() {
	close(l.wake)
	l.wake = make(chan struct{})
	l.prune()
}

// prune removes the entries that had ended before every running evaluation took its view.
func (l *tracked) prune() {
	if l.endedCount == 0 {
		return
	}
	oldest := l.seq
	for r := range l.running {
		oldest = min(oldest, r.since)
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

// countObject adds to the count of entries and running evaluations of an object.
func (l *tracked) countObject(ref api.Ref, by int) {
	l.busy.Add(int64(by))
	if l.perObject[ref] += by; l.perObject[ref] == 0 {
		delete(l.perObject, ref)
	}
}

// begin registers an evaluation.
func (l *Log) begin(e *evaluation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.since = l.seq
	l.running[e] = true
	l.countObject(e.ref, 1)
}

// finish removes an evaluation.
func (l *Log) finish(e *evaluation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, e)
	l.countObject(e.ref, -1)
	l.prune()
}

// evaluation is the evaluation of one write.
type evaluation struct {
	log   *Log
	guard *guard.Guard
	write Write
	ref   api.Ref
	view  func() *snapshot.View // the current one
	// since is the newest entry that it considers, and endSeq the last end of one. Both and
	// observed belong to the log.
	since, endSeq uint64
	// observed are the observations of the object meanwhile: a write that the API
	// server stored without waiting for the response is not tracked.
	observed []snapshot.Observation
	// footprint is that of the write in footprintView.
	footprint     *effective.Footprint
	footprintView *snapshot.View
	// deadline is how long it may wait for others.
	deadline time.Time
}

// footprintIn returns the footprint of the write in a view.
func (e *evaluation) footprintIn(v *snapshot.View) *effective.Footprint {
	if e.footprintView != v {
		e.footprint, e.footprintView = e.write.footprint(v, v.With(e.write.changes()...)), v
	}
	return e.footprint
}

// snapshot returns the current view and the entries in flight that are related to the
// write. The view has all writes that were in flight and are not any more.
func (l *Log) snapshot(e *evaluation) (*snapshot.View, []*entry) {
	if l.busy.Load() > 1 {
		e.footprintIn(e.view()) // without the lock
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	v := e.view() // with the lock, so that the index has the state of this view
	e.since, e.endSeq = l.seq, l.endSeq
	return v, l.related(e, v, v)
}

// related returns the entries of other objects that are related to a write which is
// evaluated on a view, by seq, given the current view. It leaves out those that ended
// before the evaluation took its snapshot.
func (l *tracked) related(e *evaluation, current, evaluatedOn *snapshot.View) []*entry {
	if len(l.entries) == 0 {
		return nil
	}
	l.index.retrace(current, l.updateCost)
	var out []*entry
	for other := range l.index.related(e.footprintIn(evaluatedOn)) {
		if other.ref != e.ref && (other.endedAt == 0 || other.endedAt > e.endSeq) {
			out = append(out, other)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// updateCost updates the cost of an entry for its footprint.
func (l *tracked) updateCost(e *entry) {
	before := e.cost
	e.cost.bytes = e.bytes()
	if e.endedAt == 0 {
		l.shares.remove(e.owner, before)
		l.shares.add(e.owner, e.cost)
	}
}

var (
	// errAgain is returned if the cache or the writes in flight have changed since the
	// write was evaluated.
	errAgain = errors.New("the write has to be evaluated again")
	// errOverQuota is returned if the owner of the write has used up its share.
	errOverQuota = errors.New("too many writes in flight")
)

// admit tracks a write, unless it does not need to be. Its errors are errAgain, if it is
// related to more entries by now than it was evaluated with, errOverQuota, and that of
// Write.Admissible, which is called also for a write that does not have to be tracked: it was
// evaluated on the view of this replica all the same.
func (l *Log) admit(e *evaluation, evaluatedOn *snapshot.View, evaluatedWith []*entry) error {
	added := newEntry(e.write)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	v := e.view()
	for _, other := range l.related(e, v, evaluatedOn) {
		if !slices.Contains(evaluatedWith, other) {
			return errAgain
		}
	}
	if err := e.write.admissible(); err != nil {
		return err
	}
	added.setOwner(v)
	switch {
	case slices.ContainsFunc(e.observed, added.observedBy), l.alreadyExists(added, v):
	case !l.shares.admits(added.owner, added.cost, usage{l.Options.MaxWrites, l.Options.MaxBytes}):
		return errOverQuota
	default:
		added.admittedAt = time.Now()
		l.add(added)
	}
	return nil
}

// add adds an entry that was not admitted before the newest one.
func (l *tracked) add(e *entry) {
	l.seq++
	e.seq = l.seq
	l.entries = append(l.entries, e)
	l.index.stale[e] = true // its footprint is traced when it is first needed
	l.shares.add(e.owner, e.cost)
	l.countObject(e.ref, 1)
}

// alreadyExists reports whether the API server will reject a write, because it creates an
// object that exists and is not being deleted at this moment. A generated name is
// generated again then.
func (l *tracked) alreadyExists(added *entry, v *snapshot.View) bool {
	if added.write.Change.Operation != guard.Create || added.write.Generated || v.Get(added.ref) == nil {
		return false
	}
	return !slices.ContainsFunc(l.entries, func(e *entry) bool {
		return e.endedAt == 0 && e.ref == added.ref && e.write.removes()
	})
}

// countEnded returns how many of the entries have ended, and a channel that is closed when
// any entry ends.
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
