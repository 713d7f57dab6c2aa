package guard

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard/limits"
)

// reportLimits reports what the write does to the limits on all paths.
func (ev *evaluation) reportLimits(may *authorizer) error {
	route, _ := ev.change.After.(*gateway.Route)
	was, _ := ev.change.Before.(*gateway.Route)
	switch {
	case ev.policy != nil && ev.overriddenRules.ownPaths == 0:
		ev.limits.AddUnattachedPolicy(ev.after)
	case route != nil && was != nil && !ev.hasPaths:
		ev.limits.AddUnattachedRoute(ev.after, was, route)
	}
	return ev.addLimitFindings(limits.Exceptions{Lost: ev.overrides.losesBinding, Permitted: may.mayOverride})
}

func (ev *evaluation) addLimitFindings(x limits.Exceptions) error {
	findings, err := ev.limits.Findings(x)
	for _, f := range findings {
		ev.reportForKind(f.Kind, f.Code, f.Action, Finding{Rule: f.Rule, Policy: deref(f.Policy), What: f.What, Short: f.Short, Advice: f.Advice})
	}
	return err
}

// losesBinding reports whether an override is lost since it is no longer bound.
func (o *overrides) losesBinding(policy api.Ref, rule string) bool {
	for key, l := range o.lost {
		if key.unboundReason != "" && key.rule == rule && l.ref(l.key.policy) == policy {
			return true
		}
	}
	return false
}
