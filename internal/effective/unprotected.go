package effective

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// lostGroup is a group of rules that protect, of a policy that lost rules of it to another.
type lostGroup struct {
	group      string
	policy, to api.Ref
}

// unprotected returns the rules that policies on the path lost, of groups of rules that
// protect and of which no rule is in effect. It is sorted by group and policies.
func (e *Effective) unprotected() []api.LostProtection {
	if !e.Kind.HasProtection() {
		return nil
	}
	inForce := make(map[string]bool)
	for i := range e.Rules {
		if group, _ := e.Kind.ProtectionGroup(e.Rules[i].Key); e.Rules[i].Value != nil {
			inForce[group] = true
		}
	}
	lost := make(map[lostGroup][]string)
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		for _, l := range o.Lost {
			group, rule := e.Kind.ProtectionGroup(l.Key)
			if group == "" || inForce[group] || l.Value == nil {
				continue
			}
			at := lostGroup{group, e.Ref(o.Policy), e.Ref(l.To.Policy)}
			lost[at] = append(lost[at], rule)
		}
	}
	var out []api.LostProtection
	for at, rules := range lost {
		out = append(out, api.LostProtection{Group: at.group, Rules: slices.Compact(slices.Sorted(slices.Values(rules))), Policy: at.policy, To: at.to})
	}
	slices.SortFunc(out, func(a, b api.LostProtection) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), api.CompareRefs(a.Policy, b.Policy), api.CompareRefs(a.To, b.To))
	})
	return out
}
