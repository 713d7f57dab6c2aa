package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// reportNoPath warns that the policy that is written is in force nowhere, though its
// targets exist: no path goes through any of them.
func (ev *evaluation) reportNoPath() {
	if ev.policy == nil || ev.policy.Invalid != nil || ev.policy.Unread != "" || ev.overriddenRules.ownPaths > 0 || len(ev.unread) > 0 {
		return
	}
	targetFields := len(ev.policy.Kind.Targets.Fields) + len(ev.policy.Kind.Targets.Selectors)
	if targetFields > 0 && ev.policy.Kind.Attaches() && len(ev.after.Targets(ev.policy)) == 0 { // else it awaits its reference
		ev.report(api.ReasonNoPath, api.Warn, Finding{
			What: "the policy has no effect: " + effective.NoTarget(ev.policy.Kind), Advice: "it takes effect once an object refers to it",
		})
	}
	targets := slices.DeleteFunc(effective.Targets(ev.after, ev.policy), func(t api.Target) bool {
		return !t.Accepted || effective.NoLevelReason(ev.policy, t) != "" // those have their own reasons
	})
	for _, t := range targets[:min(len(targets), maxPathless)] {
		why, advice := effective.NoPath(ev.after, ev.policy, t)
		if r, ok := ev.after.Get(t.Target).(*gateway.Route); ok && effective.IsDelegated(ev.after, r) {
			ev.report(api.ReasonNotRead, api.Warn, Finding{What: why, Advice: "check at the gateway that the policy has an effect"})
			continue
		}
		if hint := effective.RouteHint(ev.after, t.Target); hint != "" && ev.guard.ReadsAll {
			advice = hint
		}
		ev.report(api.ReasonNoPath, api.Warn, Finding{
			What: "the policy has no effect: " + why, Advice: advice, Short: "no effect: " + why, Field: ev.targetField(t),
		})
	}
	if more := len(targets) - maxPathless; more > 0 {
		ev.report(api.ReasonNoPath, api.Warn, Finding{What: fmt.Sprintf("the policy also has no effect on %s", api.Plural(more, "more target"))})
	}
}
