package guard

import (
	"errors"
	"fmt"
	"slices"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// requirements is the state of evaluating the constraints on the paths of one write.
type requirements struct {
	*successors

	// results are those of folds, where a constraint reads nothing else.
	results map[resultKey]constraint.Result
	unmet   tally[unmetKey, unmetRequirement]
	// unchangedCost is spent on paths on which nothing changes, and notBindingCost on
	// constraints that do not bind the write.
	unchangedCost, notBindingCost warnMeter
}

type resultKey struct {
	constraint *constraint.Constraint
	level      constraint.Level
	result     *merge.Result
	in         namespaces // which decide what is opaque
}

type unmetKey struct {
	constraint  *constraint.Constraint
	at, message string
	before      bool // it was so before the write, and gets no worse
	notBinding  bool // the write is of something that the constraint does not bind
	grace       grace
}

// unmetRequirement is a requirement that is not met on a number of paths; the first stands
// for all.
type unmetRequirement struct {
	unmetKey

	rule  string
	on    *effective.Effective
	paths int
	until time.Time // the end of the grace period, the earliest of all paths
}

// check evaluates the constraints on a path. What the write introduces is
// treated as the constraint's enforcement says; a violation that existed before and is not
// made worse is a warning.
func (ev *requirements) check(p effective.Pair) error {
	all := ev.after.Constraints(p.After.Kind.Ref())
	if len(all) == 0 {
		return nil
	}
	var s *constraintInputs
	for _, c := range all {
		level, on := c.On(&p.After.Path, ev.after)
		if !on {
			continue
		}
		if s == nil {
			s = ev.inputs(p)
		}
		if err := ev.checkOne(c, level, p, s); err != nil {
			return err
		}
	}
	return nil
}

func (ev *requirements) checkOne(c *constraint.Constraint, level constraint.Level, p effective.Pair, s *constraintInputs) error {
	notBinding := !ev.binds(c, level, p)
	found, err := ev.unmetOn(c, level, s, notBinding)
	if err == nil && (len(found) > 0 || c.Reads("before")) {
		found, err = ev.unmetByRequests(c, level, s, found, notBinding)
	}
	if errors.Is(err, errWarnBudget) {
		err = nil // reportUnevaluated says so
	}
	for _, u := range found {
		grace, until := ev.graceOn(c, p.After, !u.before)
		k := unmetKey{c, u.At, u.Message, u.before, notBinding, grace}
		entry := ev.unmet.at(k, unmetRequirement{unmetKey: k, rule: u.Rule, on: p.After, until: until})
		entry.paths++
		if until.Before(entry.until) {
			entry.until = until
		}
	}
	return err
}

// unmetNow is a requirement that is not met on a path after the write.
type unmetNow struct {
	constraint.Unmet

	before bool // it was so before the write, and gets no worse
}

// unmetOn returns what a constraint finds on a path, compared with the path before.
func (ev *requirements) unmetOn(c *constraint.Constraint, level constraint.Level, s *constraintInputs, notBinding bool) ([]unmetNow, error) {
	was, wasOn := level, false
	if x := s.pair.Before; x != nil {
		was, wasOn = c.On(&x.Path, ev.before)
	}
	unchanged := wasOn && was == level && s.same(c)
	m, ok := merge.Meter(ev.budget), true
	switch {
	case unchanged:
		m, ok = ev.unchangedCost.meter(c.Ref(), ev.budget)
	case notBinding:
		m, ok = ev.notBindingCost.meter(c.Ref(), ev.budget)
	}
	if !ok { // no more may be spent on warnings
		return nil, nil
	}
	now, err := ev.evaluateConstraint(c, level, s.after, m)
	var before constraint.Result
	if err == nil && wasOn && len(now.Unmet) > 0 && !unchanged {
		before, err = ev.evaluateConstraint(c, was, s.before, m)
	}
	if errors.Is(err, errWarnBudget) {
		return nil, err
	}
	out := make([]unmetNow, len(now.Unmet))
	for k, u := range now.Unmet {
		i := slices.IndexFunc(before.Unmet, func(w constraint.Unmet) bool { return w.At == u.At })
		out[k] = unmetNow{u, unchanged || i >= 0 && !u.Worse(before.Unmet[i])}
	}
	return out, err
}

// unmetByRequests compares what a constraint finds on a path with all paths before the
// write that served requests of it. What is not met is as before where that is so for each
// of them: a rule that takes requests from another one has to comply as that one did, and one
// that serves requests which nothing served before is new for these.
func (ev *requirements) unmetByRequests(c *constraint.Constraint, level constraint.Level, s *constraintInputs, found []unmetNow, notBinding bool) ([]unmetNow, error) {
	former, err := s.former()
	if err != nil {
		return found, err
	}
	for i := range found {
		switch {
		case former.starts:
			found[i].before = false
		case len(former.others) > 0 && !former.stays && !former.fresh:
			found[i].before = true // the others decide
		}
	}
	for _, x := range former.others {
		more, err := ev.unmetOn(c, level, ev.inputs(effective.Pair{Before: x, After: s.pair.After}), notBinding)
		if err != nil {
			return found, err
		}
		for _, u := range more {
			i := slices.IndexFunc(found, func(o unmetNow) bool { return o.At == u.At })
			if i < 0 {
				found = append(found, u)
				continue
			}
			found[i].before = found[i].before && u.before
		}
	}
	return found, nil
}

// binds reports whether a constraint that applies at a level of a path binds the write:
// one of an object at that level or below. What is above, or on no path, as a namespace, a
// profile or a definition, it does not bind: else a namespace could block writes to
// objects of another one. So it is with a backend of another namespace. A ReferenceGrant
// is part of its namespace.
func (ev *requirements) binds(c *constraint.Constraint, level constraint.Level, p effective.Pair) bool {
	namespace := c.Ref().Namespace
	if namespace == "" {
		return true
	}
	switch o := ev.change.Object().(type) {
	case nil:
		return true
	case *policykind.Policy:
		before, after := attachedPolicy{namespace, level, p.Before, o.Ref()}, attachedPolicy{namespace, level, p.After, o.Ref()}
		return before.bound() || after.bound()
	case *gateway.Gateway:
		return gateway.LevelGateway >= level
	case *gateway.ListenerSet:
		return gateway.LevelListenerSet >= level
	case *gateway.Service:
		if s := p.After.Path.Service; s != nil && s.Ref() == o.Ref() {
			return gateway.LevelService >= level
		}
		return gateway.LevelBackend >= level && (o.Namespace == namespace || !foreignBackend(&p.After.Path, gateway.LevelBackend))
	case *gateway.Route:
		return gateway.LevelRoute >= level
	case *gateway.Grant:
		return o.Namespace == namespace
	default:
		return false
	}
}

// evaluateConstraint evaluates a constraint that applies at a level, once for all paths
// that share a fold if it reads nothing else.
func (ev *requirements) evaluateConstraint(c *constraint.Constraint, level constraint.Level, s *pathState, m merge.Meter) (constraint.Result, error) {
	shared := s.isComparable() && !c.Reads("path") && !c.Reads("origins") && !c.Reads("before")
	at := resultKey{c, level, s.on.Result, namespacesOf(&s.on.Path)}
	if known, ok := ev.results[at]; ok && shared {
		return known, nil
	}
	found, err := c.Evaluate(ev.inputFor(c, level, s), m)
	if err != nil {
		return constraint.Result{}, &constraintError{c.Ref(), err}
	}
	if shared {
		put(&ev.results, at, found)
	}
	return found, nil
}

// constraintError is an error of evaluating a constraint.
type constraintError struct {
	constraint api.Ref
	err        error
}

func (e *constraintError) Error() string { return fmt.Sprintf("evaluate %s: %v", e.constraint, e.err) }

func (e *constraintError) Unwrap() error { return e.err }

var errWarnBudget = errors.New("cost limit of warnings exceeded")

// warnMeter is a meter for constraints that can only warn. It ends with the budget's time.
type warnMeter struct {
	spent  uint64
	budget *effective.Budget
	// of is the constraint that is evaluated; costs is what each of them took.
	of    api.Ref
	costs map[api.Ref]uint64
}

// meter returns the meter for a constraint; ok is false if no more may be spent.
func (m *warnMeter) meter(of api.Ref, budget *effective.Budget) (_ merge.Meter, ok bool) {
	m.of, m.budget = of, budget
	return m, m.spent <= maxWarnCost
}

// Spend implements merge.Meter.
func (m *warnMeter) Spend(_ *merge.Policy, cost uint64) error {
	put(&m.costs, m.of, m.costs[m.of]+cost)
	if m.spent += cost; m.spent > maxWarnCost {
		return errWarnBudget
	}
	return m.budget.Alive()
}
