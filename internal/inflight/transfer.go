package inflight

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// Pending is a write in flight that is sent to another replica.
type Pending struct {
	// Review is what Write.Review returned.
	Review []byte `json:"review"`
	// Age is the time since the write was admitted.
	Age time.Duration `json:"age"`
}

// ImportedWrite is a write that another replica has admitted.
type ImportedWrite struct {
	Write Write
	// Age is the time since it was admitted.
	Age time.Duration
}

var (
	errNoReview = errors.New("the review of the write is not known")
	errNotEmpty = errors.New("the log of writes in flight is not empty")
)

// Export returns the writes in flight, in the order in which they were admitted. It
// returns an error if any of them was admitted without a Write.Review.
func (l *Log) Export() ([]Pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	now, out := time.Now(), make([]Pending, 0, len(l.entries)-l.endedCount)
	for _, e := range l.entries {
		if e.endedAt > 0 {
			continue
		}
		if e.review == nil {
			return nil, fmt.Errorf("%s: %w", e.ref, errNoReview)
		}
		out = append(out, Pending{Review: e.review, Age: now.Sub(e.admittedAt)})
	}
	return out, nil
}

// Import adds the writes that another replica exported, in that order, without an
// evaluation and whatever their number. view returns the current view. It returns an
// error if the log is not empty.
//
// The view may have some of the writes already. They end with the next event of their
// object, or by Observe.
func (l *Log) Import(writes []ImportedWrite, view func() *snapshot.View) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) > l.endedCount {
		return errNotEmpty
	}
	now, v, age := time.Now(), view(), time.Duration(math.MaxInt64)
	for _, w := range writes {
		age = min(age, max(w.Age, 0)) // each is at most as old as the one before it
		e := newEntry(w.Write)
		e.setOwner(v)
		e.admittedAt = now.Add(-age)
		l.add(e)
	}
	return nil
}

// Reset ends all entries: this replica does not evaluate any more, or gets the writes of
// another one.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.endedAt == 0 {
			l.end(e)
		}
	}
	l.notify()
}

// Refs returns the objects of the writes in flight, for Observe.
func (l *Log) Refs() []api.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []api.Ref
	for _, e := range l.entries {
		if e.endedAt == 0 {
			out = append(out, e.ref)
		}
	}
	return out
}

// AwaitEmpty waits until no write is in flight. Its error is that of the context, which
// should have a deadline: a write that is never stored is in flight until it expires.
func (l *Log) AwaitEmpty(ctx context.Context) error {
	for {
		n, changed := l.inFlight()
		if n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d writes in flight: %w", n, ctx.Err())
		}
	}
}
