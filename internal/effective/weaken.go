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
	if len(e.Kind.Gates)+len(e.Kind.Alternatives) == 0 {
		return nil
	}
	held := e.overridden()
	if len(held) == 0 || len(held) == len(e.Rules) && len(e.Outcomes) == 1 {
		return nil
	}
	var out []Weakening
	for i := range e.Rules {
		by := &e.Rules[i]
		gate := e.Kind.IsGate(by.Key)
		group, member, alternative := e.Kind.Alternative(by.Key)
		if by.Value == nil || !gate && !alternative {
			continue
		}
		for _, rule := range held {
			if rule != by && e.higher(rule.From.Policy, by.From.Policy) && (gate || e.other(rule.Key, group, member)) {
				out = append(out, Weakening{rule, by, gate})
			}
		}
	}
	return out
}

// overridden returns the rules in force that an override holds.
func (e *Effective) overridden() []*merge.Effective {
	var out []*merge.Effective
	for i := range e.Rules {
		if r := &e.Rules[i]; r.From.Block == merge.Overrides && r.Value != nil {
			out = append(out, r)
		}
	}
	return out
}

// other reports whether a rule belongs to another alternative of a group.
func (e *Effective) other(rule, group, member merge.Key) bool {
	same, its, ok := e.Kind.Alternative(rule)
	return ok && same == group && its != member
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
