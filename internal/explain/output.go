package explain

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// Item returns the effective policy as in the JSON output.
func Item(e *effective.Effective) api.EffectivePolicy {
	out := api.EffectivePolicy{
		PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(), Spec: e.Spec(),
		Rules:    make([]api.RuleOrigin, 0, len(e.Rules)),
		Policies: make([]api.PolicyOnPath, 0, len(e.Outcomes)),
		NotRead:  e.Unread,
	}
	rules, collects := e.Rules, e.Kind.SameTarget == api.Collect
	if collects {
		rules = e.Collected()
	}
	for i, r := range rules {
		origin := api.RuleOrigin{Rule: r.Key.String(), From: e.Ref(r.From.Policy), Block: r.From.Block.String()}
		if e.Kind.HasOwnKey(r.Rule) {
			origin.Value = merge.Plain(r.Value)
		}
		if collects {
			origin.Item = &i
		}
		out.Rules = append(out.Rules, origin)
	}
	slices.SortFunc(out.Rules, func(a, b api.RuleOrigin) int { return strings.Compare(a.Rule, b.Rule) })
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		out.Policies = append(out.Policies, api.PolicyOnPath{
			Policy: e.Ref(o.Policy), State: stateOf(e, o), ReplacedBy: refOf(e, replacedBy(e, o)), Message: emptyMessageOf(e, o), Lost: lostRules(e, o),
		})
	}
	out.Unprotected = unprotected(e)
	out.Route = routeOf(e)
	return out
}

// lostRules returns the rules that a policy lost on the path, by key.
func lostRules(e *effective.Effective, o *merge.Outcome) []api.LostRule {
	var out []api.LostRule
	for _, l := range o.Lost {
		out = append(out, api.LostRule{
			Rule: l.Key.String(), Block: l.Block.String(),
			To: e.Ref(l.To.Policy), ToBlock: l.To.Block.String(), InForce: refOf(e, l.InForce), Equal: l.Equal,
		})
	}
	slices.SortFunc(out, func(a, b api.LostRule) int { return strings.Compare(a.Rule, b.Rule) })
	return out
}

// refOf returns the reference of a policy, nil for none.
func refOf(e *effective.Effective, p *merge.Policy) *api.Ref {
	if p == nil {
		return nil
	}
	ref := e.Ref(p)
	return &ref
}

// CompareItems orders effective policies by kind, then path.
func CompareItems(a, b api.EffectivePolicy) int {
	return cmp.Or(api.ComparePolicyKinds(a.PolicyKind, b.PolicyKind), api.ComparePaths(a.Path, b.Path))
}

// lostGroup is a group of rules that protect, of a policy that lost rules of it to another.
type lostGroup struct {
	group      string
	policy, to api.Ref
}

// unprotected returns the rules that policies on the path lost, of groups of rules that
// protect and of which no rule is in effect. It is sorted by group and policies.
func unprotected(e *effective.Effective) []api.LostProtection {
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
