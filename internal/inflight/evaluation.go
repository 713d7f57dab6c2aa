package inflight

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// Decision is a judgement with what is in flight in mind.
type Decision struct {
	*guard.Decision
	// Retry tells that the denial hangs on writes that may or may not be stored,
	// or on too many of them: the same write may pass a moment later.
	Retry bool
}

// Evaluate judges a write, and books it if it is admitted. view returns the
// current view; it is asked after what is in flight is known, so that nothing
// falls between the two. Warnings are those of the judgement without anything
// in flight.
//
// The errors are those of guard.Judge.
func (l *Log) Evaluate(ctx context.Context, g *guard.Guard, view func() *snapshot.View, w Write) (Decision, error) {
	if l == nil {
		j, err := g.Evaluate(ctx, view(), w.Change, nil)
		return Decision{Decision: j}, err
	}
	t := evaluation{
		Log: l, guard: g, write: w, growth: effective.GrowthOf(w.objects()...),
		reader: l.begin(w), deadline: time.Now().Add(l.maxWait(ctx)),
	}
	defer l.finish(t.reader)
	for again := false; ; again = true {
		d, done, err := t.attempt(ctx, view)
		switch {
		case errors.Is(err, errKindChanged):
			return t.kindChanged(err), nil
		case again && ctx.Err() != nil: // what was found then is about the deadline
			return t.contended(), nil
		case done || err != nil:
			return d, err
		}
	}
}

// patience returns how long a write may wait.
func (l *Log) maxWait(ctx context.Context) time.Duration {
	p := l.MaxWait
	if end, ok := ctx.Deadline(); ok {
		p = min(p, time.Until(end)/2)
	}
	return p
}

// few is how many writes in flight are tried in every combination. Where there
// are more, it is worth a moment's wait until some are seen.
const maxExhaustive = 3

// trial is one write before the judge.
type evaluation struct {
	*Log
	guard  *guard.Guard
	write  Write
	growth effective.Growth
	reader *reader
	// own is the footprint of the write in a view.
	footprint     *effective.Footprint
	footprintView *snapshot.View
	// until is how long it may wait for others.
	deadline time.Time
}

// attempt judges the write by one moment, and books it if it is admitted. It is
// not done if what it was judged by has changed.
func (t *evaluation) attempt(ctx context.Context, view func() *snapshot.View) (d Decision, done bool, err error) {
	v, met := t.snapshot(t, view)
	if err := t.write.checkKind(v); err != nil {
		return d, false, err
	}
	groups := t.groups(met)
	if most := largest(groups); most > maxExhaustive && t.wait(ctx, met, most-maxExhaustive) {
		return d, false, nil
	}
	d, err = t.evaluateGroups(ctx, v, groups)
	if err != nil {
		return d, false, err
	}
	if d.Retry {
		return d, !t.wait(ctx, met, 1), nil
	}
	if d.Denied() && t.write.Enforcement.Denies() || !t.write.persistent() || ctx.Err() != nil {
		return d, true, nil
	}
	f := t.write.pending(t.reader.ref)
	switch t.admit(t, view, v, met, f) {
	case stale:
		return d, false, nil
	case quotaExceeded:
		if t.write.Enforcement.Denies() {
			return t.overQuota(d.Decision), true, nil
		}
	case admitted:
	}
	return d, true, nil
}

// footprintIn returns the footprint of the write in a view.
func (t *evaluation) footprintIn(v *snapshot.View) *effective.Footprint {
	if t.footprintView != v {
		t.footprint, t.footprintView = t.write.footprint(v, v.With(t.write.changes()...)), v
	}
	return t.footprint
}

// lay lays entries over a view, in their order.
func overlayOf(ctx context.Context, g *guard.Guard, v *snapshot.View, entries []*entry) (*snapshot.View, error) {
	l := overlay{guard: g, view: v}
	for _, e := range entries {
		if err := l.apply(ctx, e.Write); err != nil {
			return nil, err
		}
	}
	return l.flush(), nil
}

// decide judges the write without and with those in flight that it meets.
func (t *evaluation) evaluateGroups(ctx context.Context, v *snapshot.View, groups [][]*entry) (Decision, error) {
	alone, err := t.guard.Evaluate(ctx, v, t.write.Change, nil)
	if err != nil || !t.write.Enforcement.Denies() {
		return Decision{Decision: alone}, err
	}
	for _, some := range rounds(groups) {
		with, err := t.evaluateWith(ctx, v, some)
		if err != nil {
			return Decision{}, err
		}
		if with.Denied() != alone.Denied() {
			return t.minimize(ctx, v, alone, with, some)
		}
	}
	return Decision{Decision: alone}, nil
}

// judgeWith judges the write with entries laid over the view.
func (t *evaluation) evaluateWith(ctx context.Context, v *snapshot.View, some []*entry) (*guard.Decision, error) {
	laid, err := overlayOf(ctx, t.guard, v, some)
	if err != nil {
		return nil, err
	}
	return t.guard.Evaluate(ctx, laid, t.write.Change, nil)
}

// narrow names as few of the entries as it easily can on which the decision
// depends.
func (t *evaluation) minimize(ctx context.Context, v *snapshot.View, alone, with *guard.Decision, some []*entry) (Decision, error) {
	for len(some) > maxExhaustive {
		half, found := len(some)/2, false
		for _, part := range [][]*entry{some[:half], some[half:]} {
			j, err := t.evaluateWith(ctx, v, part)
			if err != nil {
				return Decision{}, err
			}
			if found = j.Denied() != alone.Denied(); found {
				some, with = part, j
				break
			}
		}
		if !found {
			break
		}
	}
	return dependsOnPending(alone, with, some), nil
}

// groups divides the entries that a write meets into those that may matter to
// each other.
func (t *evaluation) groups(met []*entry) [][]*entry {
	if len(met) <= maxExhaustive {
		return [][]*entry{met}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.index.groups(met)
}

func largest(groups [][]*entry) int {
	most := 0
	for _, g := range groups {
		most = max(most, len(g))
	}
	return most
}

// rounds returns the combinations of entries to judge with. What no group has in
// common with another is tried in the same round: no path depends on both.
func rounds(groups [][]*entry) [][]*entry {
	var out [][]*entry
	for _, g := range groups {
		for i, some := range subsets(g) {
			if i == len(out) {
				out = append(out, nil)
			}
			out[i] = append(out[i], some...)
		}
	}
	for _, some := range out {
		slices.SortFunc(some, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	}
	return out
}

// subsets returns the combinations of entries to judge with: each, then all of
// them, and of few every one.
func subsets(entries []*entry) [][]*entry {
	var out [][]*entry
	for i := range entries {
		out = append(out, entries[i:i+1:i+1])
	}
	switch n := len(entries); {
	case n == maxExhaustive:
		a, b, c := entries[0], entries[1], entries[2]
		out = append(out, []*entry{a, b}, []*entry{a, c}, []*entry{b, c}, entries)
	case n > 1:
		out = append(out, entries)
	}
	return out
}

// wait waits until so many of the entries are gone, and reports whether they
// are: then it is worth judging anew.
func (t *evaluation) wait(ctx context.Context, entries []*entry, n int) bool {
	timer := time.NewTimer(time.Until(t.deadline))
	defer timer.Stop()
	for {
		gone, changed := t.countEnded(entries)
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
