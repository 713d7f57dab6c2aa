package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// policyAlone finds what is wrong with the policy being written and with its
// targets, before any path is looked at.
func (j *judge) policyAlone() {
	if j.policy.Invalid != nil {
		action := api.Deny
		if j.old != nil && j.old.Invalid != nil {
			action = api.Warn // it was before: it stays editable
		}
		j.report(api.ReasonInvalid, action, Finding{
			What: unreadable(j.policy),
		})
		return
	}
	for _, t := range effective.Targets(j.after, j.policy) {
		j.target(t)
	}
	j.rivals()
	j.unread()
}

func unreadable(p *policykind.Policy) string {
	return fmt.Sprintf("%s cannot be read, so it has no effect: %v", p.Ref(), p.Invalid)
}

func (j *judge) target(t api.Target) {
	what := effective.Describe(j.policy, t)
	switch t.Reason {
	case api.TargetNotFound:
		j.report(api.ReasonTargetNotFound, api.Warn, Finding{
			What:   fmt.Sprintf("the policy has no effect on its target: %s", what),
			Advice: adviceFor(t),
		})
	case api.Conflicted:
		action := api.Deny
		if j.wasConflicted(t) {
			action = api.Warn
		}
		j.report(api.ReasonConflicted, action, Finding{
			Policy: t.By, What: what,
			Advice: fmt.Sprintf("policies of kind %s do not merge on one target: edit %s or choose another target", j.policy.Kind.Kind, *t.By),
		})
	default: // accepted
		if why := effective.NoLevelReason(j.policy, t); why != "" {
			j.report(api.ReasonNotRead, api.Warn, Finding{What: why})
		}
	}
}

// adviceFor says what to do about a target that is not there.
func adviceFor(t api.Target) string {
	switch {
	case t.Refused != "":
		return "choose another target, or put the policy where it may have this one"
	case t.Selector != "":
		return "check the labels that it selects by, and those of the objects"
	default:
		return "check the target's kind, name and section, or create it"
	}
}

func (j *judge) wasConflicted(t api.Target) bool {
	return j.old != nil && slices.ContainsFunc(effective.Targets(j.before, j.old), func(o api.Target) bool {
		return o.Target == t.Target && o.Section == t.Section && o.Port == t.Port && o.Reason == api.Conflicted
	})
}

// rivals tells which policies lose a target to the one being written.
func (j *judge) rivals() {
	if j.policy.Kind.SameTarget != api.None && j.policy.Kind.SameTarget != api.FieldConflict {
		return
	}
	for _, t := range j.after.Targets(j.policy) {
		for rival, on := range j.after.On(t.Ref) {
			if rival.Kind == j.policy.Kind && rival.Ref() != j.policy.Ref() && on.Section == t.Section && on.Port == t.Port &&
				rival.Invalid == nil && on.Refused == "" && j.newlyConflicted(rival, on) {
				ref := rival.Ref()
				j.report(api.ReasonConflicted, api.Warn, Finding{
					Policy: &ref,
					What:   fmt.Sprintf("%s loses %s to this policy, which is older, and has no effect there any more", ref, t),
				})
			}
		}
	}
}

func (j *judge) newlyConflicted(rival *policykind.Policy, t policykind.Target) bool {
	return effective.Holder(j.before, rival, t) == rival && effective.Holder(j.after, rival, t) != rival
}

// unread tells what of the policy being written Overrule does not read.
func (j *judge) unread() {
	if j.policy.Unread != "" {
		j.report(api.ReasonNotRead, api.Warn, Finding{
			What: fmt.Sprintf("the reach of %s is not known: %s", j.policy.Ref(), j.policy.Unread),
		})
	}
	for _, gate := range j.policy.Idle {
		j.report(api.ReasonNotRead, api.Warn, Finding{
			Rule:   gate,
			What:   fmt.Sprintf("%s beside defaults or overrides has no effect without other rules beside them", gate),
			Advice: "move it into the block",
		})
	}
}
