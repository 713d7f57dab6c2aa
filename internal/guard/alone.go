package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
)

// policyAlone finds what is wrong with the policy being written and with its
// targets, before any path is looked at.
func (j *judge) policyAlone() {
	if j.policy.Invalid != nil {
		action := policykind.Deny
		if j.old != nil && j.old.Invalid != nil {
			action = policykind.Warn // it was before: it stays editable
		}
		j.report(api.ReasonInvalid, action, Finding{
			What: fmt.Sprintf("%s cannot be read, so it has no effect: %v", j.policy.Ref(), j.policy.Invalid),
		})
		return
	}
	for _, t := range effective.Targets(j.after, j.policy) {
		j.target(t)
	}
	j.rivals()
}

func (j *judge) target(t api.Target) {
	what := effective.Describe(j.policy, t)
	switch t.Reason {
	case api.TargetNotFound:
		j.report(api.ReasonTargetNotFound, policykind.Warn, Finding{
			What:   fmt.Sprintf("the policy has no effect on its target: %s", what),
			Advice: "check the target's kind, name and section, or create it",
		})
	case api.Conflicted:
		action := policykind.Deny
		if j.wasConflicted(t) {
			action = policykind.Warn
		}
		j.report(api.ReasonConflicted, action, Finding{
			Policy: t.By, What: what,
			Advice: fmt.Sprintf("a %s does not merge with another on the same target: edit %s or choose another target", j.policy.Kind.Kind, *t.By),
		})
	default: // accepted
	}
}

func (j *judge) wasConflicted(t api.Target) bool {
	return j.old != nil && slices.ContainsFunc(effective.Targets(j.before, j.old), func(o api.Target) bool {
		return o.Target == t.Target && o.Section == t.Section && o.Reason == api.Conflicted
	})
}

// rivals tells which policies lose a target to the one being written.
func (j *judge) rivals() {
	if j.policy.Kind.SameTarget != policykind.None {
		return
	}
	for _, t := range j.policy.Targets {
		for rival := range j.after.PoliciesOn(t.Ref, j.policy.Kind.Ref()) {
			if rival.Ref() != j.policy.Ref() && rival.Invalid == nil && j.newlyConflicted(rival, t) {
				ref := rival.Ref()
				j.report(api.ReasonConflicted, policykind.Warn, Finding{
					Policy: &ref,
					What:   fmt.Sprintf("%s loses %s to this policy, which is older, and has no effect there any more", ref, t),
				})
			}
		}
	}
}

func (j *judge) newlyConflicted(rival *policykind.Policy, t policykind.Target) bool {
	return rival.Has(t) && effective.Holder(j.before, rival, t) == rival && effective.Holder(j.after, rival, t) != rival
}

// routeAlone tells what of a route Overrule does not read.
func (j *judge) routeAlone() {
	if r, ok := j.change.After.(*hierarchy.Route); ok && r.WantsDefaultGateways {
		j.report(api.ReasonNotRead, policykind.Warn, Finding{
			What:   "useDefaultGateways is experimental and not read: effective policies by way of default gateways are not known",
			Advice: "name the gateways in parentRefs",
		})
	}
}

// report books a finding. The profile of the policy being written may give its
// reason another action than the default; what a ratchet has made a warning
// stays one.
func (j *judge) report(code api.ReasonCode, action policykind.Action, f Finding) {
	f.Code, f.Action = code, action
	if j.policy != nil && action == defaults[code] {
		f.Action = j.policy.Kind.Action(code, action)
	}
	j.found.add(f)
}

// defaults are the actions of the reasons that a profile can change.
var defaults = map[api.ReasonCode]policykind.Action{
	api.ReasonInvalid:            policykind.Deny,
	api.ReasonTargetNotFound:     policykind.Warn,
	api.ReasonConflicted:         policykind.Deny,
	api.ReasonUnsetOverride:      policykind.Deny,
	api.ReasonConstraintViolated: policykind.Deny,
	api.ReasonOverridden:         policykind.Warn,
	api.ReasonBlastRadius:        policykind.Warn,
	api.ReasonConditionSkipped:   policykind.Warn,
}
