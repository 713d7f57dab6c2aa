package guard

import (
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
		ev.warn(api.ReasonNoPath, Finding{Advice: "it takes effect once an object refers to it"}, "the policy has no effect: %s", effective.NoTarget(ev.policy.Kind))
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
		ev.warn(api.ReasonNoPath, Finding{Advice: advice, Short: "no effect: " + why, Field: ev.targetField(t)}, "the policy has no effect: %s", why)
	}
	if more := len(targets) - maxPathless; more > 0 {
		ev.warn(api.ReasonNoPath, Finding{}, "the policy also has no effect on %s", api.Plural(more, "more target"))
	}
}

// observeUnread records a path whose gateway does not read policies that are attached
// there: the one that is written, or others that the write brings to such a gateway.
func (ev *evaluation) observeUnread(p effective.Pair) {
	on, own := p.After.Ignored, ev.writesPolicy()
	if len(on) == 0 || own && !slices.Contains(on, ev.policy) || !own && p.Before != nil && p.Before.Unread != "" {
		return
	}
	u := ev.unread[p.After.Kind]
	if u == nil {
		u = new(effective.Unread)
		put(&ev.unread, p.After.Kind, u)
	}
	u.Add(p.After)
}

// reportUnreadKinds warns of gateways that do not read policies, unless that is said as the
// cause of a loss.
func (ev *evaluation) reportUnreadKinds() {
	for _, u := range ev.unread {
		subject := "policies have"
		if ev.policy != nil {
			subject = "the policy has"
		}
		for _, why := range u.Reasons() {
			switch {
			case ev.findings.any(func(f *Finding) bool { return f.unread == why }):
			case ev.policy != nil && ev.overriddenRules.ownPaths == 0:
				ev.warn(api.ReasonNoPath, Finding{Short: "no effect: " + why}, "the policy has no effect: %s", why)
			default:
				ev.warn(api.ReasonNotRead, Finding{}, "%s no effect on %s: %s", subject, api.Plural(u.Paths, "path"), why)
			}
		}
	}
}
