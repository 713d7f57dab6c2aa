package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Weakening is a rule that an override holds, and one of a lower policy that
// takes its force away although it leaves it in its place.
type Weakening struct {
	Rule, By *merge.Effective
	// Gate tells that By decides whether Rule has an effect at all; else it is
	// an alternative to Rule that is enough.
	Gate bool
}

// Weakenings returns what weakens the overrides of the path, by the weakening
// rule, then by the weakened one.
func (e *Effective) Weakenings() []Weakening {
	if len(e.Kind.PolicyProfileSpec.Gates)+len(e.Kind.PolicyProfileSpec.Alternatives) == 0 {
		return nil
	}
	var out []Weakening
	for i := range e.Rules {
		by := &e.Rules[i]
		if by.Value == nil {
			continue
		}
		for j := range e.Rules {
			held := &e.Rules[j]
			if i == j || held.Value == nil || held.From.Block != merge.Overrides || !e.higher(held.From.Policy, by.From.Policy) {
				continue
			}
			if gate := e.Kind.IsGate(by.Key); gate || e.alternatives(held.Key, by.Key) {
				out = append(out, Weakening{held, by, gate})
			}
		}
	}
	return out
}

// alternatives reports whether two rules belong to two alternatives of one group.
func (e *Effective) alternatives(a, b merge.Key) bool {
	group, one, ok := e.Kind.Alternative(a)
	if !ok {
		return false
	}
	same, other, ok := e.Kind.Alternative(b)
	return ok && same == group && other != one
}

// higher reports whether a policy of the path is above another one.
func (e *Effective) higher(a, b *merge.Policy) bool {
	place := func(p *merge.Policy) int {
		return slices.IndexFunc(e.Result.Outcomes, func(o merge.Outcome) bool { return o.Policy == p })
	}
	return place(a) < place(b)
}

func (e *Effective) weakened(w Weakening) api.WeakenedRule {
	how := "alternative"
	if w.Gate {
		how = "gate"
	}
	return api.WeakenedRule{
		Rule: w.Rule.Key.String(), Policy: e.Ref(w.Rule.From.Policy), How: how,
		By: e.Ref(w.By.From.Policy), ByRule: w.By.Key.String(),
	}
}
