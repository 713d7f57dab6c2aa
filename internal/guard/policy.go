package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// checkPolicy checks the policy that is written and its targets, before any path is
// evaluated.
func (ev *evaluation) checkPolicy() {
	if ev.policy.Invalid != nil {
		action := api.Deny
		if ev.old != nil && ev.old.Invalid != nil {
			action = api.Warn // it was before: it stays editable
		}
		ev.report(api.ReasonInvalid, action, Finding{
			What: unreadableText(ev.policy),
		})
		return
	}
	for _, t := range effective.Targets(ev.after, ev.policy) {
		ev.checkTarget(t)
	}
	ev.reportDisplaced()
	ev.reportUnread()
}

func unreadableText(p *policykind.Policy) string {
	return fmt.Sprintf("%s is invalid and has no effect: %v", p.Ref(), p.Invalid)
}

func (ev *evaluation) checkTarget(t api.Target) {
	what := effective.Describe(ev.after, ev.policy, t)
	switch t.Reason {
	case api.TargetNotFound:
		ev.report(api.ReasonTargetNotFound, api.Warn, Finding{
			What:   fmt.Sprintf("the policy has no effect on its target: %s", what),
			Advice: ev.targetAdvice(t), Field: ev.targetField(t),
		})
	case api.Conflicted:
		action := api.Deny
		if ev.wasConflicted(t) {
			action = api.Warn
		}
		ev.report(api.ReasonConflicted, action, Finding{
			Policy: t.By, What: what, Field: ev.targetField(t),
			Advice: fmt.Sprintf("policies of kind %s do not merge on one target: edit %s or choose another target", ev.policy.Kind.Kind, *t.By),
		})
	default: // accepted
		if why := effective.NoLevelReason(ev.policy, t); why != "" {
			ev.report(api.ReasonNotRead, api.Warn, Finding{What: why})
		}
	}
}

// targetAdvice says what to do about a target that does not exist.
func (ev *evaluation) targetAdvice(t api.Target) string {
	sections := "" // as secret as those of a parent
	if ev.reads(t.Target.Namespace) {
		sections = effective.ListSections(ev.after.Get(t.Target))
	}
	switch hint := effective.TargetHint(ev.after, t, ev.guard.ReadsAll); {
	case t.Refused != "":
		return "choose another target, or move the policy to a namespace that is allowed to target this one"
	case t.Selector != "":
		return "check the selector and the labels of the objects"
	case hint != "":
		return hint
	case sections != "" && t.Section != "":
		return sections
	default:
		return "check the target's kind, name and section, or create it"
	}
}

func (ev *evaluation) wasConflicted(t api.Target) bool {
	return ev.old != nil && slices.ContainsFunc(effective.Targets(ev.before, ev.old), func(o api.Target) bool {
		return o.Target == t.Target && o.Section == t.Section && o.Port == t.Port && o.Reason == api.Conflicted
	})
}

// reportDisplaced reports which policies lose a target to the one that is written.
func (ev *evaluation) reportDisplaced() {
	if !ev.policy.Kind.MayConflict() {
		return
	}
	for _, t := range ev.after.Targets(ev.policy) {
		for rival, on := range ev.after.On(t.Ref) {
			if rival.Kind == ev.policy.Kind && rival.Ref() != ev.policy.Ref() && on.SamePlace(t) &&
				rival.Invalid == nil && on.Refused == "" && ev.newlyConflicted(rival, on) {
				ref := rival.Ref()
				ev.report(api.ReasonConflicted, api.Warn, Finding{
					Policy: &ref, Field: ev.policy.TargetField(t.Ref, t.Section, t.Port),
					What: fmt.Sprintf("%s would no longer apply to %s: this policy is %s and takes precedence", ref, t, effective.OlderText(rival, ev.policy)),
				})
			}
		}
	}
}

func (ev *evaluation) newlyConflicted(rival *policykind.Policy, t policykind.Target) bool {
	return effective.Holder(ev.before, rival, t) == rival && effective.Holder(ev.after, rival, t) != rival
}

// reportUnread reports what of the policy that is written is not read.
func (ev *evaluation) reportUnread() {
	if ev.policy.Unread != "" && ev.policy.Kind.Source != policykind.Label { // with a label and no target it is no policy
		ev.report(api.ReasonNotRead, api.Warn, Finding{
			What: fmt.Sprintf("the paths of %s are unknown: %s", ev.policy.Ref(), ev.policy.Unread),
		})
	}
	for _, gate := range ev.policy.IgnoredGates {
		ev.report(api.ReasonNotRead, api.Warn, Finding{
			Rule:   gate,
			What:   fmt.Sprintf("%s next to defaults or overrides has no effect without other rules next to them", gate),
			Advice: "move it into the block",
		})
	}
}
