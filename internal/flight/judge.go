package flight

import (
	"context"
	"errors"
	"slices"
	"time"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/store"
)

// Decision is a judgement with what is in flight in mind.
type Decision struct {
	*guard.Judgement
	// Retry tells that the denial hangs on writes that may or may not be stored,
	// or on too many of them: the same write may pass a moment later.
	Retry bool
}

// Judge judges a write, and books it if it is admitted. view returns the
// current view; it is asked after what is in flight is known, so that nothing
// falls between the two. Warnings are those of the judgement without anything
// in flight.
//
// The errors are those of guard.Judge.
func (l *Log) Judge(ctx context.Context, g *guard.Guard, view func() *store.View, w Write) (Decision, error) {
	if l == nil {
		j, err := g.Judge(ctx, view(), w.Change, nil)
		return Decision{Judgement: j}, err
	}
	t := trial{Log: l, guard: g, write: w, ground: w.ground(), judging: l.begin(w), until: time.Now().Add(l.patience(ctx))}
	defer l.end(t.judging)
	for again := false; ; again = true {
		d, done, err := t.attempt(ctx, view)
		switch {
		case errors.Is(err, errReread):
			return t.reread(err), nil
		case again && ctx.Err() != nil: // what was found then is about the deadline
			return t.contended(), nil
		case done || err != nil:
			return d, err
		}
	}
}

// patience returns how long a write may wait.
func (l *Log) patience(ctx context.Context) time.Duration {
	p := l.Patience
	if end, ok := ctx.Deadline(); ok {
		p = min(p, time.Until(end)/2)
	}
	return p
}

// few is how many writes in flight are tried in every combination. Where there
// are more, it is worth a moment's wait until some are seen.
const few = 3

// trial is one write before the judge.
type trial struct {
	*Log
	guard   *guard.Guard
	write   Write
	ground  ground
	judging *judging
	// until is how long it may wait for others.
	until time.Time
}

// attempt judges the write by one moment, and books it if it is admitted. It is
// not done if what it was judged by has changed.
func (t *trial) attempt(ctx context.Context, view func() *store.View) (d Decision, done bool, err error) {
	inFlight := t.look(t.judging)
	v := view()
	if err := t.write.judgedBy(v); err != nil {
		return d, false, err
	}
	met, err := t.met(ctx, v, inFlight)
	if err != nil {
		return d, false, err
	}
	if len(met) > few && t.wait(ctx, met, len(met)-few) {
		return d, false, nil
	}
	d, err = t.decide(ctx, v, met)
	if err != nil {
		return d, false, err
	}
	if d.Retry {
		return d, !t.wait(ctx, met, 1), nil
	}
	if d.Denied() && t.write.Enforcement.Denies() || !t.write.lasting() {
		return d, true, nil
	}
	return t.book(ctx, v, d)
}

// book books the write, unless one that matters was booked meanwhile. Whoever
// is late is not waited for: the write was denied without us.
func (t *trial) book(ctx context.Context, v *store.View, d Decision) (Decision, bool, error) {
	if ctx.Err() != nil {
		return d, true, nil
	}
	f := flown{Write: t.write, ground: t.ground, ref: t.judging.ref, Stamp: t.write.Stamp()}
	f.Change.User = nil // nobody asks who it was
	for {
		a := t.admit(t.judging, f)
		if a.full > 0 && t.write.Enforcement.Denies() {
			return t.overloaded(d.Judgement, a.full), true, nil
		}
		if len(a.added) == 0 {
			return d, true, nil
		}
		met, err := t.met(ctx, v, a.added)
		if err != nil || len(met) > 0 {
			return d, false, err
		}
	}
}

// met returns those of the entries that may matter to a path that the write
// matters to.
func (t *trial) met(ctx context.Context, v *store.View, entries []*entry) ([]*entry, error) {
	if !slices.ContainsFunc(entries, func(e *entry) bool { return !t.ground.apartFrom(e.ground) }) {
		return nil, nil // as most writes
	}
	all, err := lay(ctx, t.guard, v, entries)
	if err != nil {
		return nil, err
	}
	own := t.write.footprint(v, all.With(t.write.changes()...))
	var out []*entry
	for _, e := range entries {
		if own.Meets(e.trace(v, all, entries[len(entries)-1].seq)) {
			out = append(out, e)
		}
	}
	return out, nil
}

// trace returns the footprint of an entry, given the view without and with all
// that is in flight, and the newest of that.
func (e *entry) trace(v, all *store.View, seq uint64) *effective.Footprint {
	if t := e.traced.Load(); t != nil && t.view == v && t.seq == seq {
		return t.Footprint
	}
	t := &traced{v, seq, e.footprint(v, all)}
	e.traced.Store(t)
	return t.Footprint
}

// lay lays entries over a view, in their order.
func lay(ctx context.Context, g *guard.Guard, v *store.View, entries []*entry) (*store.View, error) {
	l := layer{guard: g, view: v}
	for _, e := range entries {
		if err := l.lay(ctx, e.Write); err != nil {
			return nil, err
		}
	}
	return l.flat(), nil
}

// decide judges the write without and with those in flight that it meets.
func (t *trial) decide(ctx context.Context, v *store.View, met []*entry) (Decision, error) {
	alone, err := t.guard.Judge(ctx, v, t.write.Change, nil)
	if err != nil || !t.write.Enforcement.Denies() {
		return Decision{Judgement: alone}, err
	}
	for _, some := range subsets(met) {
		laid, err := lay(ctx, t.guard, v, some)
		if err != nil {
			return Decision{}, err
		}
		with, err := t.guard.Judge(ctx, laid, t.write.Change, nil)
		if err != nil {
			return Decision{}, err
		}
		if with.Denied() != alone.Denied() {
			return undecided(alone, with, some), nil
		}
	}
	return Decision{Judgement: alone}, nil
}

// subsets returns the combinations of entries to judge with: each, then all of
// them, and of few every one.
func subsets(entries []*entry) [][]*entry {
	var out [][]*entry
	for i := range entries {
		out = append(out, entries[i:i+1:i+1])
	}
	switch n := len(entries); {
	case n == few:
		a, b, c := entries[0], entries[1], entries[2]
		out = append(out, []*entry{a, b}, []*entry{a, c}, []*entry{b, c}, entries)
	case n > 1:
		out = append(out, entries)
	}
	return out
}

// wait waits until so many of the entries are gone, and reports whether they
// are: then it is worth judging anew.
func (t *trial) wait(ctx context.Context, entries []*entry, n int) bool {
	timer := time.NewTimer(time.Until(t.until))
	defer timer.Stop()
	for {
		gone, changed := t.goneFrom(entries)
		if gone >= n {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
