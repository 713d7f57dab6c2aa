package effective

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// API returns the effective policy as in the JSON output.
func (e *Effective) API() api.EffectivePolicy {
	out := api.EffectivePolicy{
		PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(), Spec: e.Spec(),
		Rules:    make([]api.RuleOrigin, 0, len(e.Rules)),
		Policies: make([]api.PolicyOnPath, 0, len(e.Outcomes)),
		NotRead:  e.Unread,
	}
	rules, collects := e.Rules, e.Kind.SameTarget == api.Collect
	if collects {
		rules = e.collected()
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
			Policy: e.Ref(o.Policy), State: e.StateOf(o), ReplacedBy: e.refOf(e.replacedBy(o)), Message: e.emptyMessage(o), Lost: e.LostRules(o),
		})
	}
	out.Unprotected = e.unprotected()
	out.Route = e.route()
	return out
}

// LostRules returns the rules that a policy lost on the path, by key.
func (e *Effective) LostRules(o *merge.Outcome) []api.LostRule {
	var out []api.LostRule
	for _, l := range o.Lost {
		out = append(out, api.LostRule{
			Rule: l.Key.String(), Block: l.Block.String(),
			To: e.Ref(l.To.Policy), ToBlock: l.To.Block.String(), InForce: e.refOf(l.InForce), Equal: l.Equal,
		})
	}
	slices.SortFunc(out, func(a, b api.LostRule) int { return strings.Compare(a.Rule, b.Rule) })
	return out
}

// refOf returns the reference of a policy, nil for none.
func (e *Effective) refOf(p *merge.Policy) *api.Ref {
	if p == nil {
		return nil
	}
	ref := e.Ref(p)
	return &ref
}

// emptyMessage returns the message for a policy without rules, which may replace the
// policies above it; "" for other policies.
func (e *Effective) emptyMessage(o *merge.Outcome) string {
	return emptyMessage(o.Policy, o.Policy.Empty() && e.replaces(o.Policy))
}

// replaces reports whether a policy replaces another one as a whole.
func (e *Effective) replaces(p *merge.Policy) bool {
	return slices.ContainsFunc(e.Outcomes, func(o merge.Outcome) bool { return e.replacedBy(&o) == p })
}

func emptyMessage(p *merge.Policy, replaces bool) string {
	switch {
	case !p.Empty():
		return ""
	case replaces:
		return "it has no rules, and the policies above it have no effect because of it"
	default:
		return "it has no rules"
	}
}

// CompareItems orders effective policies by kind, then path.
func CompareItems(a, b api.EffectivePolicy) int {
	return cmp.Or(api.ComparePolicyKinds(a.PolicyKind, b.PolicyKind), api.ComparePaths(a.Path, b.Path))
}
