package inflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// Result is a decision together with the writes in flight.
type Result struct {
	Decision *guard.Decision
	// Retry is set if the denial depends on writes that may or may not be stored, or on
	// too many of them: the same write may be admitted a moment later.
	Retry bool
}

// Evaluate evaluates a write, and tracks it if it is admitted. view returns the current
// view; it is called after the writes in flight were read, so that no write is in
// neither. Warnings are those of the evaluation without any write in flight.
//
// The errors are those of guard.Evaluate and of Write.Admissible, and effective.ErrTooMuch: a
// write is not admitted after its deadline.
func (l *Log) Evaluate(ctx context.Context, g *guard.Guard, view func() *snapshot.View, w Write) (Result, error) {
	if l == nil {
		d, err := g.Evaluate(ctx, view(), w.Change, nil)
		return Result{Decision: d}, err
	}
	e := evaluation{
		log: l, guard: g, write: w, ref: w.Change.Object().Ref(), view: view, deadline: time.Now().Add(l.maxWait(ctx)),
	}
	l.begin(&e)
	defer l.finish(&e)
	for repeated := false; ; repeated = true {
		result, err := e.attempt(ctx)
		switch {
		case errors.Is(err, errKindChanged), errors.Is(err, errPoliciesInFlight):
			return e.kindChanged(err), nil
		case repeated && ctx.Err() != nil: // the result is about the deadline
			return e.contended(), nil
		case !errors.Is(err, errAgain):
			return result, err
		}
	}
}

// maxWait returns how long a write may wait.
func (l *Log) maxWait(ctx context.Context) time.Duration {
	d := l.Options.MaxWait
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/2)
	}
	return d
}

// maxExhaustive is the number of writes in flight of which every combination is
// evaluated. If there are more, waiting until some are observed is cheaper.
const maxExhaustive = 3

// attempt evaluates the write at one moment, and tracks it if it is admitted. Its error is
// errAgain if the cache or the writes in flight have changed meanwhile.
func (e *evaluation) attempt(ctx context.Context) (Result, error) {
	v, related := e.log.snapshot(e)
	if err := e.write.checkKind(v); err != nil {
		return Result{}, err
	}
	if blocking := e.log.blocking(e.write, related); len(blocking) > 0 {
		if e.wait(ctx, blocking, len(blocking)) {
			return Result{}, errAgain
		}
		return Result{}, fmt.Errorf("%s: %w", e.ref, e.write.readingError())
	}
	groups := e.groups(related)
	if n := largest(groups); n > maxExhaustive && e.wait(ctx, related, n-maxExhaustive) {
		return Result{}, errAgain
	}
	result, err := e.evaluateGroups(ctx, v, groups)
	// A kind may not be listed because of a write in flight.
	_, unlisted := errors.AsType[*guard.UnlistedKindError](err)
	switch {
	case (unlisted && len(related) > 0 || err == nil && result.Retry) && e.wait(ctx, related, 1):
		return Result{}, errAgain
	case err != nil, result.Retry, result.Decision.Denied() && e.write.Enforcement.Denies(), !e.write.persistent():
		return result, err
	case ctx.Err() != nil && len(related) > 0: // the API server has given up
		return e.contended(), nil
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("admit the write: %w: %w", effective.ErrTooMuch, ctx.Err())
	}
	switch err := e.log.admit(e, v, related); {
	case !errors.Is(err, errOverQuota):
		return result, err
	case e.write.Enforcement.Denies():
		return e.overQuota(result.Decision), nil
	default:
		return result, nil
	}
}

// evaluateGroups evaluates the write without and with the related writes in flight.
func (e *evaluation) evaluateGroups(ctx context.Context, v *snapshot.View, groups [][]*entry) (Result, error) {
	alone, err := e.guard.Evaluate(ctx, v, e.write.Change, nil)
	if err != nil || !e.write.Enforcement.Denies() || alone.Cut && ctx.Err() != nil {
		return Result{Decision: alone}, err
	}
	for _, entries := range rounds(groups) {
		with, err := e.evaluateWith(ctx, v, entries)
		if err != nil {
			return Result{}, err
		}
		if with.Denied() != alone.Denied() {
			return e.minimize(ctx, v, alone, with, entries)
		}
	}
	return Result{Decision: alone}, nil
}

// evaluateWith evaluates the write on the view with entries applied.
func (e *evaluation) evaluateWith(ctx context.Context, v *snapshot.View, entries []*entry) (*guard.Decision, error) {
	applied, err := overlayOf(v, entries)
	if err != nil {
		return nil, err
	}
	return e.guard.Evaluate(ctx, applied, e.write.Change, nil)
}

// minimize names as few of the entries on which the decision depends as a bisection
// finds.
func (e *evaluation) minimize(ctx context.Context, v *snapshot.View, alone, with *guard.Decision, entries []*entry) (Result, error) {
	for len(entries) > maxExhaustive {
		half, found := len(entries)/2, false
		for _, part := range [][]*entry{entries[:half], entries[half:]} {
			d, err := e.evaluateWith(ctx, v, part)
			if err != nil {
				return Result{}, err
			}
			if found = d.Denied() != alone.Denied(); found {
				entries, with = part, d
				break
			}
		}
		if !found {
			break
		}
	}
	return dependsOnPending(alone, with, entries), nil
}

// groups divides related entries into those that can affect each other.
func (e *evaluation) groups(related []*entry) [][]*entry {
	if len(related) <= maxExhaustive {
		return [][]*entry{related}
	}
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	return e.log.index.groups(related)
}

func largest(groups [][]*entry) int {
	n := 0
	for _, g := range groups {
		n = max(n, len(g))
	}
	return n
}

// rounds returns the combinations of entries to evaluate with. Groups have no path in
// common, so one round has a combination of each.
func rounds(groups [][]*entry) [][]*entry {
	var out [][]*entry
	for _, g := range groups {
		for i, entries := range subsets(g) {
			if i == len(out) {
				out = append(out, nil)
			}
			out[i] = append(out[i], entries...)
		}
	}
	for _, entries := range out {
		slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	}
	return out
}

// subsets returns the combinations of the entries of a group to evaluate with: each
// alone, then all of them, and of maxExhaustive or fewer every combination.
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

// wait waits until n of the entries have ended, and reports whether they have: then the
// write is worth evaluating again.
func (e *evaluation) wait(ctx context.Context, entries []*entry, n int) bool {
	timer := time.NewTimer(time.Until(e.deadline))
	defer timer.Stop()
	for {
		ended, changed := e.log.countEnded(entries)
		if ended >= n {
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
