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
	ownPolicy     overriddenRuleSet // of the policy that is written
	ownDefaults   ownDefaults       // of it that more specific policies replace
	otherPolicies overriddenRuleSet // that the write brings to other policies
	ownPaths      int               // that the policy that is written is on
}

// overriddenRuleSet counts overridden rules that are the same but for the path.
type overriddenRuleSet struct {
	rules     map[overriddenRuleKey]*overriddenRule
	max       int  // that are counted separately, 0 for all
	truncated bool // there are more
}

type overriddenRuleKey struct {
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
	key   overriddenRuleKey
	lost  merge.Lost
	on    *effective.Effective
	paths int
	// objects is the number of objects of the paths, the last of which is last.
	objects int
	last    api.Ref
	// several is set if other policies replace the rule on other paths.
	several bool
}

func (s *overriddenRuleSet) add(e *effective.Effective, o *merge.Outcome, l merge.Lost, cause overriddenCause, whole, before bool) {
	if s.rules == nil {
		s.rules = make(map[overriddenRuleKey]*overriddenRule)
	}
	k := overriddenRuleKey{
		from: o.Policy, rule: l.Key.String(), to: l.To.Policy, conditional: l.To.Conditional, before: before,
		equal: l.To.Conditional && l.Equal, inForce: l.InForce, whole: whole, cause: cause,
	}
	had := s.rules[k]
	switch {
	case had != nil:
	case s.max == 0 || len(s.rules) < s.max:
		had = &overriddenRule{key: k, lost: l, on: e}
		s.rules[k] = had
	default:
		s.truncated = true
		return
	}
	had.addPath(e)
}

// addPath counts a path; those of one object come together.
func (r *overriddenRule) addPath(e *effective.Effective) {
	r.paths++
	if at := objectOf(e); r.objects == 0 || r.last != at {
		r.objects++
		r.last = at
	}
}

// sorted returns the rules, and more of them, by policy, rule and what beat it.
func (s *overriddenRuleSet) sorted(more ...*overriddenRule) []*overriddenRule {
	out := slices.Grow(more, len(s.rules))
	for _, l := range s.rules {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *overriddenRule) int {
		return cmp.Or(
			api.CompareRefs(a.on.Ref(a.key.from), b.on.Ref(b.key.from)),
			strings.Compare(a.key.rule, b.key.rule),
			api.CompareRefs(a.on.Ref(a.key.to), b.on.Ref(b.key.to)),
			cmp.Compare(btoi(a.key.conditional), btoi(b.key.conditional)),
			cmp.Compare(btoi(a.key.before), btoi(b.key.before)),
			cmp.Compare(btoi(a.key.equal), btoi(b.key.equal)),
			cmp.Compare(btoi(a.key.whole), btoi(b.key.whole)),
			cmp.Compare(nameOf(a.key.inForce), nameOf(b.key.inForce)),
			cmp.Compare(a.key.cause, b.key.cause),
		)
	})
	return out
}

func nameOf(p *merge.Policy) string {
	if p == nil {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// addRoute adds the fields of the route itself that an override newly takes, or
// takes again after they were edited.
func (r *overriddenRules) addRoute(p effective.Pair) {
	own := p.After.Own()
	if own == nil {
		return
	}
	for _, l := range own.Lost {
		if l.To.Block == merge.Overrides && !routeFieldOverriddenBefore(p.Before, l) {
			r.otherPolicies.add(p.After, own, l, byOverride, false, false)
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
func (r *overriddenRules) addOwn(p effective.Pair, i int) {
	o := &p.After.Outcomes[i]
	r.ownDefaults.addInForce(p.After, o.Policy)
	if len(o.Lost) == 0 {
		return
	}
	was, whole := indexBefore(p, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		switch cause := causeOf(p.After, i, l); cause {
		case byItself:
		case byOverride:
			old := overriddenAt(p.Before, was, l.Key)
			r.ownPolicy.add(p.After, o, l, cause, whole && !l.To.Conditional, l.To.Conditional && old != nil && sameBlock(old.To, l.To))
		case bySpecific, byUnset:
			r.ownDefaults.add(p.After, o, l, cause, whole)
		default:
			r.ownPolicy.add(p.After, o, l, cause, whole, false)
		}
	}
}

// sameBlock reports whether one override took a rule before and after.
func sameBlock(before, after merge.Origin) bool {
	return before.Conditional == after.Conditional && before.Policy.Same(after.Policy)
}

// addOther adds the rules of another policy that a higher override newly takes.
// A rule that had no effect before has none to lose.
func (r *overriddenRules) addOther(p effective.Pair, i int) {
	if p.Before != nil && p.Before.Result == p.After.Result {
		return
	}
	o := &p.After.Outcomes[i]
	if len(o.Lost) == 0 {
		return
	}
	was, whole := indexBefore(p, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		if isOverridden(p.After, i, l) && (was < 0 || wasInForce(&p.Before.Outcomes[was], l.Key)) {
			l.Equal = false // whether values of others are equal is not counted apart
			r.otherPolicies.add(p.After, o, l, byOverride, whole, false)
		}
	}
}

// isOverridden reports whether an override of a higher policy took a rule of the i-th
// policy. That a lower policy's rule beats a default is no loss, in whichever block it is.
func isOverridden(e *effective.Effective, i int, l merge.Lost) bool {
	if l.To.Block != merge.Overrides {
		return false
	}
	for k := range i {
		if e.Outcomes[k].Policy == l.To.Policy {
			return true
		}
	}
	return false
}

// indexBefore returns the place among the policies of the path before the change
// that a policy had there, or -1.
func indexBefore(p effective.Pair, policy *merge.Policy) int {
	if p.Before == nil {
		return -1
	}
	return slices.IndexFunc(p.Before.Outcomes, func(o merge.Outcome) bool { return o.Policy.Same(policy) })
}

// wasInForce reports whether a rule of the policy took part and was not lost.
func wasInForce(o *merge.Outcome, k merge.Key) bool {
	if o.LostAt(k) != nil {
		return false
	}
	return slices.ContainsFunc(o.Policy.Blocks, func(b merge.Rules) bool { return b.At(k) != nil && o.BlockApplied(b.Block) })
}

// overriddenAt returns how a higher override took a rule of the i-th policy, or nil.
func overriddenAt(e *effective.Effective, i int, k merge.Key) *merge.Lost {
	if i < 0 {
		return nil
	}
	l := e.Outcomes[i].LostAt(k)
	if l == nil || !isOverridden(e, i, *l) {
		return nil
	}
	return l
}
