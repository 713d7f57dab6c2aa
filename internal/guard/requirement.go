package guard

import (
	"errors"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// needs is what the constraints on the paths of one write come to.
type needs struct {
	// judged is what constraints say of folds, where it depends on nothing else.
	judged map[judgedKey]constraint.Result
	// unmet adds up what is the same but for the path.
	unmet map[unmetKey]*unmetTally
	// spare is left for paths on which nothing changes, and above for constraints
	// that do not bind the write; costs is what each of those took of it.
	spare, above spare
	costs        map[api.Ref]uint64
}

type judgedKey struct {
	constraint *constraint.Constraint
	level      constraint.Level
	result     *merge.Result
	in         namespaces // which decide what is opaque
}

type unmetKey struct {
	constraint  *constraint.Constraint
	at, message string
	before      bool // it was so before the write, and gets no worse
	above       bool // the write is of something that the constraint does not bind
}

// unmetTally is a demand that is not met on a number of paths; the first stands
// for all.
type unmetTally struct {
	unmetKey
	rule  string
	on    *effective.Effective
	paths int
}

// constrained returns the kinds whose paths without a policy are to be judged,
// too: a policy changes nothing on those of other kinds.
func (j *judge) constrained() []api.PolicyKind {
	return slices.DeleteFunc(j.after.Constrained(), func(k api.PolicyKind) bool { return !j.mayMatter(k) })
}

// mayMatter reports whether the write may change effective policies of a kind,
// or their paths.
func (j *judge) mayMatter(k api.PolicyKind) bool {
	p, ok := j.change.Object().(*policykind.Policy)
	return !ok || p.Kind.Ref() == k
}

// requirements judges the constraints on a path: what the write introduces is
// what the constraint's enforcement says, what was so before and gets no worse
// is told.
func (j *judge) requirements(p effective.Pair) error {
	all := j.after.Constraints(p.After.Kind.Ref())
	if len(all) == 0 || !j.mayMatter(p.After.Kind.Ref()) {
		return nil
	}
	var s *sides
	for _, c := range all {
		level, on := c.On(&p.After.Path, j.after)
		if !on {
			continue
		}
		if s == nil {
			s = j.sides(p)
		}
		if err := j.requirement(c, level, p, s); err != nil {
			return err
		}
	}
	return nil
}

func (j *judge) requirement(c *constraint.Constraint, level constraint.Level, p effective.Pair, s *sides) error {
	was, wasOn := level, false
	if p.Before != nil {
		was, wasOn = c.On(&p.Before.Path, j.before)
	}
	if wasOn && was == level && s.same(c) {
		return j.asBefore(c, level, p, s)
	}
	above := !j.binds(c, level, p)
	var m merge.Meter = j.budget
	if above {
		if j.needs.above.spent > mostSpare {
			return nil
		}
		m = j.aside(c.Ref())
	}
	now, err := j.evaluate(c, level, s.after, m)
	var before constraint.Result
	if err == nil && wasOn && len(now.Unmet) > 0 {
		before, err = j.evaluate(c, was, s.before, m)
	}
	if errors.Is(err, errSpare) {
		return nil // unevaluated says so
	}
	for _, u := range now.Unmet {
		i := slices.IndexFunc(before.Unmet, func(w constraint.Unmet) bool { return w.At == u.At })
		j.book(c, p.After, u, i >= 0 && !u.Worse(before.Unmet[i]), above)
	}
	return err
}

// binds reports whether a constraint that stands at a level of a path binds the
// write: one of an object at that level or below. What is above, or on no path,
// as a namespace, a profile or a definition, it does not: else a namespace could
// close the objects of another one to writes. So it is with a backend of another
// namespace. A ReferenceGrant is part of its namespace.
func (j *judge) binds(c *constraint.Constraint, level constraint.Level, p effective.Pair) bool {
	namespace := c.Ref().Namespace
	if namespace == "" {
		return true
	}
	switch o := j.change.Object().(type) {
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

// asBefore tells what is not met on a path on which nothing changes, as long as
// that costs little.
func (j *judge) asBefore(c *constraint.Constraint, level constraint.Level, p effective.Pair, s *sides) error {
	if j.needs.spare.spent > mostSpare {
		return nil
	}
	j.needs.spare.budget = j.budget
	now, err := j.evaluate(c, level, s.after, &j.needs.spare)
	if errors.Is(err, errSpare) {
		return nil
	}
	for _, u := range now.Unmet {
		j.book(c, p.After, u, true, !j.binds(c, level, p))
	}
	return err
}

// evaluate asks a constraint that stands at a level once for all paths that share
// a fold, if it reads nothing but what is folded.
func (j *judge) evaluate(c *constraint.Constraint, level constraint.Level, s *moment, m merge.Meter) (constraint.Result, error) {
	shared := s.isComparable() && !c.Reads("path") && !c.Reads("origins") && !c.Reads("before")
	at := judgedKey{c, level, s.on.Result, namespacesOf(&s.on.Path)}
	if known, ok := j.needs.judged[at]; ok && shared {
		return known, nil
	}
	found, err := c.Evaluate(j.sight(c, level, s), m)
	if err != nil {
		return constraint.Result{}, &askingError{c.Ref(), err}
	}
	if shared {
		if j.needs.judged == nil {
			j.needs.judged = make(map[judgedKey]constraint.Result)
		}
		j.needs.judged[at] = found
	}
	return found, nil
}

func (j *judge) book(c *constraint.Constraint, e *effective.Effective, u constraint.Unmet, before, above bool) {
	k := unmetKey{c, u.At, u.Message, before, above}
	if j.needs.unmet == nil {
		j.needs.unmet = make(map[unmetKey]*unmetTally)
	}
	if j.needs.unmet[k] == nil {
		j.needs.unmet[k] = &unmetTally{unmetKey: k, rule: u.Rule, on: e}
	}
	j.needs.unmet[k].paths++
}
