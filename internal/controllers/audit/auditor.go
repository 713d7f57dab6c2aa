package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"

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
	// auditTimeout bounds the evaluation of one scope. It is far more than the paths
	// of a gateway need.
	auditTimeout = time.Minute
	// maxRetryDelay is the longest time between attempts that fail.
	maxRetryDelay = time.Minute
)

// Options of an Auditor.
type Options struct {
	Store *snapshot.Store
	// Violations returns the violations in the effective policies of a scope. The error is
	// that ctx ended, or that they cannot be computed.
	Violations func(context.Context, *snapshot.View, effective.Scope) ([]api.Violation, error)
	// Events records violations that are new since the first run, on the leader; nil
	// for none.
	Events events.EventRecorder
	// Leading reports whether this replica is the leader.
	Leading func() bool
	// Locate returns a complete reference to an object for an Event, with its uid; nil
	// if references have only the name.
	Locate Locate
	// Delay is how long changes are collected before a run; 0 means DefaultDelay.
	Delay time.Duration
	// Queue is the maximum number of changes that are audited individually; more cause
	// an audit of all paths. 0 means DefaultQueue.
	Queue int
	Log   logr.Logger
}

// Auditor keeps the set of current violations. Create it with New.
type Auditor struct {
	opts    Options
	changes *snapshot.Changes
	current atomic.Pointer[violations]
	runs    *prometheus.CounterVec

	// lastView is the view of the last run, nil before the first. It belongs to the
	// goroutine of Start.
	lastView *snapshot.View
	// allowed are the objects of violations that are still allowed, and until when.
	allowed map[api.Ref]time.Time
	unmet   atomic.Pointer[map[unmetKey]unmetConstraint]
}

// New returns an Auditor that observes its store, which must not contain objects yet.
func New(o Options) *Auditor {
	o.Delay = cmp.Or(o.Delay, DefaultDelay)
	a := &Auditor{opts: o, changes: snapshot.NewChanges(cmp.Or(o.Queue, DefaultQueue), nil), runs: newRuns(), allowed: make(map[api.Ref]time.Time)}
	a.current.Store(&violations{})
	a.unmet.Store(&map[unmetKey]unmetConstraint{})
	o.Store.Subscribe(a.changes.Record)
	return a
}

// NeedLeaderElection returns false: each replica exports its own metrics.
func (a *Auditor) NeedLeaderElection() bool { return false }

// Start audits until ctx ends: once the store is ready, and then shortly after each
// change.
func (a *Auditor) Start(ctx context.Context) error {
	retry := a.opts.Delay
	for background.Sleep(ctx, a.opts.Delay) {
		if _, ready := a.opts.Store.View(); !ready {
			continue
		}
		err := a.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			a.opts.Log.Error(err, "audit failed; retrying with all paths", "retry", retry.String())
			background.Sleep(ctx, retry)
			retry = min(2*retry, maxRetryDelay)
			continue
		}
		retry = a.opts.Delay
		select {
		case <-a.changes.Wake():
		case <-a.nextAllowedEnds():
			a.recordEnded()
		case <-ctx.Done():
		}
	}
	return nil
}

// run audits the changes since the last run.
func (a *Auditor) run(ctx context.Context) error {
	changed := a.changes.Take()
	all := changed.All || slices.ContainsFunc(changed.Events, isConstraintEvent)
	v, _ := a.opts.Store.View()
	var found []api.Violation
	var err error
	covered := func([]api.PathElement) bool { return true }
	if all { // true for the first run
		changed.Events = nil
		found, err = a.auditAll(ctx, v)
	} else {
		objects := snapshot.Objects(changed.Events)
		found, err = a.auditScope(ctx, v, effective.ScopeOf(objects...))
		covered = effective.FootprintOf(objects, a.lastView, v).Through()
	}
	a.countRun(all, err)
	if err != nil {
		a.changes.RecordAll()
		return err
	}
	next, added, resolved := a.current.Load().replace(a.withoutAllowed(v, found, covered, changed.Events), covered)
	first := a.lastView == nil
	a.current.Store(&next)
	a.lastView = v
	a.report(ctx, added, resolved, first)
	return nil
}

// isConstraintEvent reports whether an event is a change of a constraint, which can apply
// to any path.
func isConstraintEvent(e snapshot.Event) bool {
	_, before := e.Before.(*constraint.Constraint)
	_, after := e.After.(*constraint.Constraint)
	if before && after {
		return !snapshot.Same(e.Before, e.After)
	}
	return before || after
}

// auditAll audits all paths, one part at a time (effective.Parts), and pauses after each for as long as
// it took: admission has priority.
func (a *Auditor) auditAll(ctx context.Context, v *snapshot.View) ([]api.Violation, error) {
	var out []api.Violation
	for scope := range effective.Parts(v) {
		start := time.Now()
		found, err := a.auditScope(ctx, v, scope)
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

func (a *Auditor) auditScope(ctx context.Context, v *snapshot.View, scope effective.Scope) (found []api.Violation, err error) {
	defer background.RecoverError(&err, "audit")
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	found, err = a.opts.Violations(ctx, v, scope)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return slices.DeleteFunc(found, notChecked), nil
}

// notChecked reports whether v only says that something could not be checked, which is
// no violation.
func notChecked(v api.Violation) bool { return v.Code == api.ReasonNotRead }
