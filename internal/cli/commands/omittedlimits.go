package commands

import (
	"context"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// tellLeftOut tells which limits the documents do not have, and what of them the
// documents do not say.
func (a *app) reportOmitted(ctx context.Context, q *query, found *renderedLimits) error {
	if len(found.byEntryPoint) == 0 {
		a.infof("no limit that is written as the RFC has it is bound to a rule on any of the paths")
	}
	if err := a.reportInactivePolicies(ctx, q); err != nil {
		return err
	}
	for _, policy := range slices.SortedFunc(maps.Keys(found.unrecognized), api.CompareRefs) {
		rules := slices.Sorted(maps.Keys(found.unrecognized[policy]))
		a.infof("left out: %s of %s: not written as the RFC has it (rates with a unit); what is in force is not changed by that", strings.Join(rules, ", "), policy)
	}
	for _, l := range slices.SortedFunc(maps.Keys(found.limits), compareLimits) {
		a.reportLimit(l, found.limits[l])
	}
	for _, at := range found.boundLimits.conflicts() {
		a.warnf("%s: one is bound by one listener, one by another, and the documents do not tell listeners apart", at)
	}
	for _, gate := range slices.SortedFunc(maps.Keys(found.gates), compareLimits) {
		a.warnf("%s decides whether limits hold, and the documents cannot say so", gate)
	}
	return nil
}

// tellFate tells why a limit is bound to nothing, or what of it is not reached.
func (a *app) reportLimit(l limitRef, f *limitStatus) {
	switch {
	case f.bound && len(f.unsetSelectors) > 0:
		a.warnf("%s looks at %s, which no action of a gateway adds: it may not count", l, strings.Join(f.unsetSelectors, ", "))
	case f.bound:
	case len(f.shadowedBy) > 0:
		var by []string
		for _, o := range slices.SortedFunc(maps.Keys(f.shadowedBy), compareLimits) {
			by = append(by, o.String())
		}
		a.infof("left out: %s: bound to no rule: shadowed by %s", l, strings.Join(by, ", "))
	default:
		a.infof("left out: %s: bound to no rule: its triggers match none", l)
	}
}

// tellIdle tells which of the policies that are asked for take no part.
func (a *app) reportInactivePolicies(ctx context.Context, q *query) error {
	policies := q.namedPolicies()
	if len(policies) == 0 {
		q.addTargeting(policies)
	}
	for p := range policies {
		if p.Kind.Binding == nil {
			delete(policies, p)
		}
	}
	outcomes, err := q.outcomes(ctx, policies.sorted())
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Message != "" {
			a.infof("left out: %s is %s: %s", o.Policy, o.State, strings.ReplaceAll(o.Message, "\n", "; "))
		}
	}
	return nil
}
