package lookup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// reach returns where the named policies have an effect, and a message that says why some
// have none.
func (a *answering) reach(ctx context.Context) (items []api.Reach, message string, err error) {
	policies, rule := a.NamedPolicies().Sorted(), a.Rule
	if rule != nil && !slices.ContainsFunc(policies, func(p *policykind.Policy) bool { return hasRule(p, *rule) }) {
		return nil, "", fmt.Errorf("rule %s %w in %s%s", rule, ErrNotFound, policies[0].Ref(), ruleHint(rule, a.NamedPolicies()))
	}
	found := a.summarize()
	outcomes, err := a.Outcomes(ctx, policies)
	if err != nil {
		return nil, "", err
	}
	var messages []string
	for i, p := range policies { // outcomes have the same order
		r := cmp.Or(found[&p.Policy], newReach(p.Ref(), rule))
		if r.Paths.Holding == 0 {
			messages = append(messages, noEffectMessage(outcomes[i], rule))
		}
		items = append(items, *r)
	}
	return items, strings.Join(messages, "\n"), nil
}

// hasRule reports whether a policy has a rule that matches a name.
func hasRule(p *policykind.Policy, rule merge.Name) bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		return slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return rule.Matches(r.Key) })
	})
}

// ruleHint ends an error about a rule that none of some policies has: with the key, the prefix
// or the name that was probably meant; "" if none is close.
func ruleHint(rule *merge.Name, policies PolicySet) string {
	var names []string
	for _, p := range policies.Sorted() {
		for _, b := range p.Blocks {
			for _, r := range b.Rules {
				segments := r.Key.Segments()
				names = append(names, segments[len(segments)-1])
				for n := range len(segments) {
					if prefix, ok := r.Key.Ancestor(n + 1); ok {
						names = append(names, prefix.String())
					}
				}
			}
		}
	}
	return DidYouMean(rule.String(), names)
}

// DidYouMean ends an error about a name that does not exist: with the one that was probably
// meant; "" if none is close.
func DidYouMean(name string, names []string) string {
	if meant := editdistance.Closest(name, names); meant != "" {
		return fmt.Sprintf(": did you mean %s?", meant)
	}
	return ""
}

// noEffectMessage returns why a policy, or a rule of it, has no effect.
func noEffectMessage(o api.Outcome, rule *merge.Name) string {
	subject := o.Policy.String()
	if rule != nil {
		subject = fmt.Sprintf("rule %s of %s", rule, subject)
	}
	reasons := []string{fmt.Sprintf("the policy is %s", o.State)}
	if o.Message != "" {
		reasons[0] += ": " + o.Message
	}
	for _, l := range o.Lost {
		if key, err := merge.ParseKey(l.Rule); err == nil && (rule == nil || rule.Matches(key)) {
			reasons = append(reasons, fmt.Sprintf("%s lost to %s", l.Rule, l.To))
		}
	}
	return fmt.Sprintf("%s has no effect: %s", subject, strings.Join(reasons, ", "))
}

// affecting returns the policies that affect the named objects, or a section of them, sorted,
// and a message that says which hold above routes, or why there are none.
func (a *answering) affecting(ctx context.Context) (items []api.Reach, message string, err error) {
	items = []api.Reach{}
	for _, r := range a.summarize() {
		if r.Paths.Holding > 0 {
			items = append(items, *r)
		}
	}
	slices.SortFunc(items, func(x, y api.Reach) int { return api.CompareRefs(x.Policy, y.Policy) })
	above, err := a.aboveRoutes(ctx)
	message = strings.Join(above, "\n")
	switch {
	case len(items)+len(above) > 0:
	case len(a.paths) == 0:
		message = fmt.Sprintf("no policy affects %s: no path with a policy leads through it%s", a.Objects[0].Ref(), a.routesHint())
	default:
		message = fmt.Sprintf("no policy affects %s: no rule of the policies on its paths is in effect", a.Objects[0].Ref())
	}
	return items, message, err
}

// summarize returns where each policy on the paths of the query has an effect.
func (a *answering) summarize() map[*merge.Policy]*api.Reach {
	found := make(map[*merge.Policy]*api.Reach)
	for _, on := range a.paths {
		for i := range on.Outcomes {
			o := &on.Outcomes[i]
			if found[o.Policy] == nil {
				found[o.Policy] = newReach(on.Ref(o.Policy), a.Rule)
			}
			addPath(found[o.Policy], on.Effective, o, a.Rule)
		}
	}
	for _, r := range found {
		sortReach(r)
	}
	return found
}

// routesHint names the routes that send traffic to a backend and that the reader is
// allowed to get: the paths of most policy kinds end above the backend.
func (q *Query) routesHint() string {
	var routes []string
	for r := range q.View.RoutesTo(q.Objects[0].Ref()) {
		if ref := r.Ref(); q.Hides == nil || !q.Hides(ref) {
			routes = append(routes, ref.String())
		}
	}
	if len(routes) == 0 {
		return ""
	}
	return "; for policy kinds whose paths end above backends, specify one of its routes: " + strings.Join(routes, ", ")
}
