package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// Defaults of Options.
const (
	DefaultDelay = time.Second
	DefaultQueue = 1000
	// limit is how long one look may take: it is far more than the paths of a
	// gateway need.
	auditTimeout = time.Minute
	// patience is the longest time between attempts that fail.
	maxRetryDelay = time.Minute
)

// Options of a Sweeper.
type Options struct {
	Store *snapshot.Store
	// Audit returns what is wrong with the effective policies of a scope; its
	// error is that the context ended, or that it cannot be said.
	Audit func(context.Context, *snapshot.View, effective.Scope) ([]api.Violation, error)
	// Events are told of violations that are new since the first sweep, on the
	// replica that leads; nil for none.
	Events Recorder
	// Leading is closed once this replica leads.
	Leading <-chan struct{}
	// Locate completes the reference to an object for an Event, with its uid;
	// nil if its name has to do.
	Locate Locate
	// Delay is how long changes are gathered before a sweep; 0 means
	// DefaultDelay.
	Delay time.Duration
	// Queue is how many changes are looked at one by one; beyond it, everything is. 0 means DefaultQueue.
	Queue int
	Log   logr.Logger
}

// Sweeper keeps the set of current violations. Make it with New.
type Auditor struct {
	Options
	changes *snapshot.Changes
	current atomic.Pointer[violations]
	runs    counter

	// of the one goroutine that sweeps:
	lastView *snapshot.View // that was looked at, nil before the first sweep
}

// New returns a sweeper that hears of changes from its store, which must not be
// fed yet.
func New(o Options) *Auditor {
	o.Delay = cmp.Or(o.Delay, DefaultDelay)
	s := &Auditor{Options: o, changes: snapshot.NewChanges(cmp.Or(o.Queue, DefaultQueue), nil)}
	s.current.Store(&violations{})
	o.Store.Subscribe(s.changes.Record)
	return s
}

// NeedLeaderElection returns false: each replica has metrics of its own.
func (s *Auditor) NeedLeaderElection() bool { return false }

// Start sweeps until ctx ends: once the store is ready, and then a moment after
// each change.
func (s *Auditor) Start(ctx context.Context) error {
	retry := s.Delay
	for background.Sleep(ctx, s.Delay) {
		if _, ready := s.Store.View(); !ready {
			continue
		}
		err := s.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.Log.Error(err, "audit failed; retrying with all paths", "retry", retry.String())
			background.Sleep(ctx, retry)
			retry = min(2*retry, maxRetryDelay)
			continue
		}
		retry = s.Delay
		select {
		case <-s.changes.Wake():
		case <-ctx.Done():
		}
	}
	return nil
}

// sweep looks at what changed.
func (s *Auditor) run(ctx context.Context) error {
	changed := s.changes.Take()
	all := changed.All || slices.ContainsFunc(changed.Events, isConstraintEvent)
	v, _ := s.Store.View()
	var found []api.Violation
	var err error
	looked := func([]api.PathElement) bool { return true }
	if all { // as it is at first
		found, err = s.auditAll(ctx, v)
	} else {
		objects := snapshot.Objects(changed.Events)
		found, err = s.auditScope(ctx, v, effective.ScopeOf(objects...))
		looked = effective.FootprintOf(objects, s.lastView, v).Through()
	}
	s.runs.add(all, err)
	if err != nil {
		s.changes.RecordAll()
		return err
	}
	next, fresh, gone := s.current.Load().replace(found, looked)
	first := s.lastView == nil
	s.current.Store(&next)
	s.lastView = v
	s.report(ctx, fresh, gone, first)
	return nil
}

// demands reports whether an event is about a constraint: what is demanded of
// effective policies may be of any path.
func isConstraintEvent(e snapshot.Event) bool {
	_, before := e.Before.(*constraint.Constraint)
	_, after := e.After.(*constraint.Constraint)
	return before || after
}

// everything looks at all paths, root by root, and rests after each for as long
// as it took: admission comes first.
func (s *Auditor) auditAll(ctx context.Context, v *snapshot.View) ([]api.Violation, error) {
	var out []api.Violation
	for scope := range effective.Parts(v) {
		start := time.Now()
		found, err := s.auditScope(ctx, v, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if !background.Sleep(ctx, time.Since(start)) {
			return nil, fmt.Errorf("audit all paths: %w", ctx.Err())
		}
	}
	return out, nil
}

func (s *Auditor) auditScope(ctx context.Context, v *snapshot.View, scope effective.Scope) (found []api.Violation, err error) {
	defer background.Recovered(&err, "audit")
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	found, err = s.Audit(ctx, v, scope)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return slices.DeleteFunc(found, notChecked), nil
}

// unread reports whether something could not be checked: that is no violation.
func notChecked(v api.Violation) bool { return v.Code == api.ReasonNotRead }
