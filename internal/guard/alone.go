package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
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
	for _, gate := range j.policy.IgnoredGates {
		j.report(api.ReasonNotRead, api.Warn, Finding{
			Rule:   gate,
			What:   fmt.Sprintf("%s beside defaults or overrides has no effect without other rules beside them", gate),
			Advice: "move it into the block",
		})
	}
}

// otherAlone finds what is to be told of an object that is no policy, before
// any path is looked at.
func (j *judge) otherAlone() {
	switch o := j.change.Object().(type) {
	case *gateway.Route:
		j.routeAlone()
	case *gateway.ListenerSet:
		j.setAlone(o)
	case *gateway.Grant:
		j.grantAlone()
	}
}

// setAlone tells that a gateway does not take the listeners of a set.
func (j *judge) setAlone(s *gateway.ListenerSet) {
	if j.change.After != nil {
		var was []api.Ref
		if old, ok := j.change.Before.(*gateway.ListenerSet); ok {
			was = []api.Ref{old.Unread}
		}
		j.parentsAlone(was, []api.Ref{s.Unread})
	}
	g := j.after.Gateway(s.GatewayNamespace, s.GatewayName)
	if j.change.After == nil || g == nil || g.Sets.Allows(g.Namespace, s.Namespace, j.after.NamespaceLabels(s.Namespace)) {
		return
	}
	j.report(api.ReasonTargetNotFound, api.Warn, Finding{
		What: fmt.Sprintf("%s has no effect: the allowedListeners of %s do not admit listener sets of namespace %s, so neither routes nor policies reach its listeners",
			s.Ref(), g.Ref(), s.Namespace),
		Advice: fmt.Sprintf("ask the owner of %s", g.Ref().Key()),
	})
}

// grantAlone tells which policies lose a target with a ReferenceGrant.
func (j *judge) grantAlone() {
	for _, o := range objects(j.change) {
		for _, to := range o.(*gateway.Grant).To { //nolint:forcetypeassert // both are of one kind
			for p := range j.before.TargetsIn(api.PolicyKind{Group: to.Group, Kind: to.Kind}, o.Ref().Namespace) {
				j.lostTargets(p)
			}
			for p := range j.before.Selecting(api.PolicyKind{Group: to.Group, Kind: to.Kind}) {
				j.lostTargets(p)
			}
		}
	}
}

func (j *judge) lostTargets(p *policykind.Policy) {
	was, is := j.before.Targets(p), j.after.Targets(p)
	for i, t := range is {
		if t.Grant && t.Refused != "" && was[i].Refused == "" {
			ref := p.Ref()
			j.report(api.ReasonTargetNotFound, api.Warn, Finding{
				Policy: &ref, What: fmt.Sprintf("%s loses its target: %s", ref, t.Refused),
			})
		}
	}
}

// routeAlone tells what of a route Overrule does not read.
func (j *judge) routeAlone() {
	r, ok := j.change.After.(*gateway.Route)
	if !ok {
		return
	}
	var was []api.Ref
	if old, ok := j.change.Before.(*gateway.Route); ok {
		was = old.Unread
	}
	j.parentsAlone(was, r.Unread)
	if r.WantsDefaultGateways {
		j.report(api.ReasonNotRead, api.Warn, Finding{
			What:   "useDefaultGateways is experimental and not read: effective policies by way of default gateways are not known",
			Advice: "name the gateways in parentRefs",
		})
	}
}

// report books a finding. The profile of the policy being written may give its
// reason another action than the default; what a ratchet has made a warning
// stays one.
func (j *judge) report(code api.ReasonCode, action api.Action, f Finding) {
	var kind *policykind.Kind
	if j.policy != nil {
		kind = j.policy.Kind
	}
	j.reportOf(kind, code, action, f)
}

// reportOf books a finding about the policies of a kind, whatever is written.
func (j *judge) reportOf(kind *policykind.Kind, code api.ReasonCode, action api.Action, f Finding) {
	f.Code, f.Action = code, action
	if kind != nil && action == defaults[code] {
		f.Action = kind.Action(code, action)
	}
	j.found.add(f)
}

// defaults are the actions of the reasons that a profile can change.
var defaults = map[api.ReasonCode]api.Action{
	api.ReasonInvalid:            api.Deny,
	api.ReasonTargetNotFound:     api.Warn,
	api.ReasonNoPath:             api.Warn,
	api.ReasonConflicted:         api.Deny,
	api.ReasonUnsetOverride:      api.Deny,
	api.ReasonConstraintViolated: api.Deny,
	api.ReasonOverridden:         api.Warn,
	api.ReasonBlastRadius:        api.Warn,
	api.ReasonConditionSkipped:   api.Warn,
	api.ReasonOverrideRemoved:    api.Deny,
	api.ReasonOverrideEvaded:     api.Deny,
	api.ReasonOverrideWeakened:   api.Deny,
	api.ReasonEffectiveInvalid:   api.Deny,
	api.ReasonTriggerUnmatched:   api.Deny,
	api.ReasonLimitShadowed:      api.Warn,
	api.ReasonLimitWidened:       api.Warn,
}
