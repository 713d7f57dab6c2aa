package guard

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// fieldOf returns the field of the written object that a finding without one is about, ""
// if it is about none alone.
func (ev *evaluation) fieldOf(f *Finding) string {
	switch o := ev.change.Object().(type) {
	case *policykind.Policy:
		return policyField(f, o)
	case *gateway.Route:
		if len(o.Parents) > 0 && (f.Code == api.ReasonNoPath || f.Code == api.ReasonUnreached) {
			return "spec.parentRefs"
		}
	}
	return ""
}

func policyField(f *Finding, p *policykind.Policy) string {
	switch f.Code { //nolint:exhaustive // the others are about a rule
	case api.ReasonInvalid:
		return p.InvalidField()
	case api.ReasonTargetNotFound, api.ReasonConflicted, api.ReasonNoPath, api.ReasonUnreached:
		if len(p.Targets) == 1 {
			return p.TargetField(p.Targets[0].Ref, p.Targets[0].Section, p.Targets[0].Port)
		}
		return p.TargetsField()
	case api.ReasonUnsetOverride:
		if at := p.UnsetField(f.Rule); at != "" {
			return at
		}
	}
	return p.RuleField(f.Rule)
}

// targetField returns the field of a target of the policy that is written.
func (ev *evaluation) targetField(t api.Target) string {
	return ev.policy.TargetField(t.Target, t.Section, t.Port)
}
