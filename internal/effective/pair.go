package effective

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Pair is one path before and after a change. Before is nil if there was no path, or no
// policy on it; After if the path was removed.
type Pair struct {
	Before, After *Effective
	// Again is set if After was in another pair already: the path of Before was a
	// path of its own and is now part of After.
	Again bool
	// Unit is the number of the unit of the comparison. The pairs of one path, of
	// whatever kind, are in one unit, and follow each other.
	Unit int
	// Unreached is set by its reader if no request reaches After: nothing is lost or gained.
	Unreached bool
}

// Effective returns After, or Before if After is nil.
func (p Pair) Effective() *Effective {
	if p.After != nil {
		return p.After
	}
	return p.Before
}

// Limited reports whether limits that bind by triggers are in force on the path, before or
// after: what is bound differs from path to path.
func (p Pair) Limited() bool { return p.Before.Bound() != nil || p.After.Bound() != nil }

// Changed reports whether the effective policy differs in a value or in the origin of a
// value. An equal value of another policy is a change, too: otherwise the author of a
// policy could find out a value of another policy by trial.
func (p Pair) Changed() bool {
	switch {
	case p.Before == nil || p.After == nil:
		return len(p.Effective().Rules) > 0
	case p.Before.Result == p.After.Result:
		return false
	}
	return !slices.EqualFunc(p.Before.Rules, p.After.Rules, func(a, b merge.Effective) bool {
		return a.Rule == b.Rule && a.From == b.From ||
			a.Key == b.Key && a.From.Block == b.From.Block && p.Before.Ref(a.From.Policy) == p.After.Ref(b.From.Policy) && merge.Equal(a.Value, b.Value)
	})
}

// Rules returns the rules that differ in their value or origin, by key.
func (p Pair) Rules() []api.RuleChange {
	changes := make(map[string]api.RuleChange)
	if p.Before != nil {
		for _, r := range p.Before.Rules {
			changes[r.Key.String()] = api.RuleChange{Rule: r.Key.String(), Before: p.Before.value(r)}
		}
	}
	if p.After != nil {
		for _, r := range p.After.Rules {
			c := changes[r.Key.String()]
			c.Rule, c.After = r.Key.String(), p.After.value(r)
			changes[c.Rule] = c
		}
	}
	out := make([]api.RuleChange, 0, len(changes))
	for _, c := range changes {
		if c.Before == nil || c.After == nil || c.Before.From != c.After.From || c.Before.Block != c.After.Block || !merge.Equal(c.Before.Value, c.After.Value) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b api.RuleChange) int { return strings.Compare(a.Rule, b.Rule) })
	return out
}

func (e *Effective) value(r merge.Effective) *api.RuleValue {
	return &api.RuleValue{Value: merge.Plain(r.Value), From: e.Ref(r.From.Policy), Block: r.From.Block.String()}
}
