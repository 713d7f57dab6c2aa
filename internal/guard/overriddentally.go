package guard

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// overriddenRules are the rules that have no effect, since those of other policies do.
type overriddenRules struct {
	*write

	own      tally[overriddenKey, overriddenRule] // of the policy that is written
	ownPaths int                                  // that it is on
	inForce  map[string]bool                      // its rules that are in force on some path
	last     *merge.Result                        // whose rules are known: many paths share one
	others   tally[overriddenKey, overriddenRule] // that the write brings to other policies
}

// overriddenKey is what the losses of a rule on several paths have in common. More specific
// policies that replace a rule do not count apart: it has the key of its name alone.
type overriddenKey struct {
	from        *merge.Policy
	rule        string
	to          *merge.Policy
	conditional bool
	before      bool // a conditional one took it before the write, too
	equal       bool // to the effective rule
	inForce     *merge.Policy
	whole       bool // lost with all others of the policy, which the other replaces
	cause       overriddenCause
}

// overriddenRule is a rule lost on a number of paths; the first stands for all.
type overriddenRule struct {
	overriddenKey

	lost  merge.Lost
	on    *effective.Effective
	paths int
	// objects is the number of objects of the paths, the last of which is last.
	objects int
	last    api.Ref
	// several is set if other policies replace the rule on other paths.
	several bool
}

func keyOfLost(o *merge.Outcome, l merge.Lost, cause overriddenCause, whole bool) overriddenKey {
	return overriddenKey{
		from: o.Policy, rule: l.Key.String(), to: l.To.Policy, conditional: l.To.Conditional,
		equal: l.To.Conditional && l.Equal, inForce: l.InForce, whole: whole, cause: cause,
	}
}

// addPath counts a path; those of one object come together.
func (r *overriddenRule) addPath(e *effective.Effective) {
	r.paths++
	if at := objectOf(e); r.objects == 0 || r.last != at {
		r.objects++
		r.last = at
	}
}

func compareOverridden(a, b *overriddenRule) int {
	return cmp.Or(
		api.CompareRefs(a.on.Ref(a.from), b.on.Ref(b.from)),
		strings.Compare(a.rule, b.rule),
		api.CompareRefs(a.on.Ref(a.to), b.on.Ref(b.to)),
		cmp.Compare(btoi(a.conditional), btoi(b.conditional)),
		cmp.Compare(btoi(a.whole), btoi(b.whole)),
		cmp.Compare(nameOf(a.inForce), nameOf(b.inForce)),
	)
}

// addTaken adds a rule of another policy that an override takes. Whether its value is that in
// force is not counted apart.
func (ev *overriddenRules) addTaken(e *effective.Effective, o *merge.Outcome, l merge.Lost, whole bool) {
	l.Equal = false
	k := keyOfLost(o, l, byOverride, whole)
	if had := ev.others.at(k, overriddenRule{overriddenKey: k, lost: l, on: e}); had != nil {
		had.addPath(e)
	}
}

// addRoute adds the fields of the route itself that an override newly takes, or
// takes again after they were edited.
func (ev *overriddenRules) addRoute(p effective.Pair) {
	own := p.After.Own()
	if own == nil {
		return
	}
	for _, l := range own.Lost {
		if l.To.Block == merge.Overrides && !routeFieldOverriddenBefore(p.Before, l) {
			ev.addTaken(p.After, own, l, false)
		}
	}
}

// routeFieldOverriddenBefore reports whether the route's own fields lost the same value before.
func routeFieldOverriddenBefore(before *effective.Effective, l merge.Lost) bool {
	if before == nil || before.Own() == nil {
		return false
	}
	return slices.ContainsFunc(before.Own().Lost, func(was merge.Lost) bool {
		return was.Key == l.Key && was.To.Block == merge.Overrides && merge.Equal(was.Value, l.Value)
	})
}

// addOwn adds the rules of the policy that is written, the i-th on the path, that have no
// effect.
func (ev *overriddenRules) addOwn(p effective.Pair, i int) {
	o := &p.After.Outcomes[i]
	ev.addInForce(p.After, o.Policy)
	if len(o.Lost) == 0 {
		return
	}
	was, whole := outcomeOf(p.Before, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		cause := causeOf(p.After, i, l)
		if cause == byItself {
			continue
		}
		k := keyOfLost(o, l, cause, whole)
		at := &k
		if cause == byOverride {
			k.before = l.To.Conditional && was >= 0 && sameOverride(p.Before, was, l)
			k.whole = whole && !l.To.Conditional
		} else if cause.isDefault() {
			at = &overriddenKey{rule: k.rule}
		}
		had := ev.own.at(*at, overriddenRule{overriddenKey: k, lost: l, on: p.After})
		had.addPath(p.After)
		had.several = had.several || had.to != k.to
		had.whole = had.whole && k.whole
	}
}

// addInForce adds the rules of the policy that is written that are in force on a path.
func (ev *overriddenRules) addInForce(e *effective.Effective, own *merge.Policy) {
	if ev.last == e.Result {
		return
	}
	ev.last = e.Result
	for i := range e.Rules {
		if e.Rules[i].From.Policy == own {
			put(&ev.inForce, e.Rules[i].Key.String(), true)
		}
	}
}

// sameOverride reports whether the override that took a rule took it from the i-th policy of
// the path before, too.
func sameOverride(before *effective.Effective, i int, l merge.Lost) bool {
	old := before.Outcomes[i].LostAt(l.Key)
	return old != nil && isOverridden(before, i, *old) && old.To.Conditional == l.To.Conditional && old.To.Policy.Same(l.To.Policy)
}

// addOther adds the rules of another policy that a higher override newly takes.
// A rule that had no effect before has none to lose.
func (ev *overriddenRules) addOther(p effective.Pair, i int) {
	if p.Before != nil && p.Before.Result == p.After.Result {
		return
	}
	o := &p.After.Outcomes[i]
	if len(o.Lost) == 0 {
		return
	}
	was, whole := outcomeOf(p.Before, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		if isOverridden(p.After, i, l) && (was < 0 || wasInForce(&p.Before.Outcomes[was], l.Key)) {
			ev.addTaken(p.After, o, l, whole)
		}
	}
}
