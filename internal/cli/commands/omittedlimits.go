package commands

import (
	"context"
	"maps"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/cli/printers"
)

// reportOmitted prints the limits that the rendered documents omit, and what the
// documents cannot express.
func (t *terminal) reportOmitted(ctx context.Context, q *query, found *renderedLimits) error {
	if len(found.byEntryPoint) == 0 {
		t.infof("no limits to render: no limit in the format of the RFC is bound to a rule on these paths")
	}
	if err := t.reportInactivePolicies(ctx, q); err != nil {
		return err
	}
	for unrecognized := sortedLimits(found.unrecognized); len(unrecognized) > 0; {
		policy, rules := unrecognized[0].policy, []string(nil)
		for len(unrecognized) > 0 && unrecognized[0].policy == policy {
			rules, unrecognized = append(rules, unrecognized[0].rule), unrecognized[1:]
		}
		t.infof("omitted: %s of %s: not in the format of the RFC (rates with a unit); it remains in effect", strings.Join(rules, ", "), policy)
	}
	for _, l := range slices.SortedFunc(maps.Keys(found.limits), compareLimits) {
		t.reportLimit(l, found.limits[l])
	}
	for _, at := range found.bound.conflicts() {
		t.warnf("%s: different listeners bind different limits to the rule, which the documents cannot express", at)
	}
	for _, gate := range sortedLimits(found.gates) {
		t.warnf("%s decides whether the limits apply, which the documents cannot express", gate)
	}
	return nil
}

// reportLimit prints why a limit is bound to no rule, or which of its selectors
// no gateway sets.
func (t *terminal) reportLimit(l limitRef, f *limitStatus) {
	switch {
	case f.bound && len(f.unsetSelectors) > 0:
		t.warnf("%s uses %s, which no gateway action sets: requests may not be counted", l, strings.Join(f.unsetSelectors, ", "))
	case f.bound:
	case len(f.shadowedBy) > 0:
		by := printers.Texts(sortedLimits(f.shadowedBy), limitRef.String)
		t.infof("omitted: %s: not bound to any rule: shadowed by %s", l, strings.Join(by, ", "))
	default:
		t.infof("omitted: %s: not bound to any rule: its triggers match none", l)
	}
}

// reportInactivePolicies prints the policies of the query that are not in effect,
// and why.
func (t *terminal) reportInactivePolicies(ctx context.Context, q *query) error {
	policies := q.NamedPolicies()
	if len(policies) == 0 {
		q.AddTargeting(policies)
	}
	for p := range policies {
		if p.Kind.Binding == nil {
			delete(policies, p)
		}
	}
	outcomes, err := q.Outcomes(ctx, policies.Sorted())
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Message != "" {
			t.infof("omitted: %s is %s: %s", o.Policy, o.State, strings.ReplaceAll(o.Message, "\n", "; "))
		}
	}
	return nil
}
