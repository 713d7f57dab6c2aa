package effective

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Targets returns the targets of a policy, and for each of them whether it is accepted.
// They are sorted by group, kind, namespace, name and section.
func Targets(v *snapshot.View, p *policykind.Policy) []api.Target {
	out := make([]api.Target, 0, len(p.Targets))
	for _, t := range v.Targets(p) {
		out = append(out, target(v, p, t))
	}
	slices.SortStableFunc(out, func(a, b api.Target) int {
		return cmp.Or(api.CompareRefs(a.Target, b.Target), strings.Compare(a.Section, b.Section), cmp.Compare(a.Port, b.Port), strings.Compare(a.Selector, b.Selector))
	})
	return out
}

func target(v *snapshot.View, p *policykind.Policy, t policykind.Target) api.Target {
	out := api.Target{Target: t.Ref, Section: t.Section, Port: t.Port, AttachedBy: t.AttachedBy, Refused: t.Refused}
	if t.Selector != nil {
		out.Selector = t.Selector.String()
	}
	switch {
	case p.Invalid != nil:
		out.Reason = api.Invalid
	case t.Refused != "" || !Exists(v, p.Kind, t):
		out.Reason = api.TargetNotFound
	case p.Kind.MayConflict():
		s := sharing{view: v, kind: p.Kind}
		if by := s.rival(attachment{p, t}, s.accepted(s.on(t.Ref))); by != nil {
			ref := by.Ref()
			out.Reason, out.By = api.Conflicted, &ref
		}
	}
	out.Accepted = out.Reason == ""
	return out
}

// Describe returns why a target is not accepted.
func Describe(v *snapshot.View, p *policykind.Policy, t api.Target) string {
	target := policykind.Target{Ref: t.Target, Section: t.Section, Port: t.Port}
	switch {
	case t.Refused != "":
		return t.Refused
	case t.By != nil && !targets(v, *t.By, target):
		return fmt.Sprintf("%s conflicts with %s on another target: policies of kind %s have an effect on all of their targets, or on none", p.Ref(), *t.By, p.Kind.Kind)
	case t.By != nil:
		return fmt.Sprintf("%s already has %s, which is %s", target, *t.By, OlderText(p, v.Get(*t.By)))
	case t.Selector != "":
		return fmt.Sprintf("no %s has %s", t.Target.Kind, t.Selector)
	default:
		return target.String() + " does not exist" + sectionHint(p.Kind, t)
	}
}

// targets reports whether a policy has a target in the same place.
func targets(v *snapshot.View, by api.Ref, at policykind.Target) bool {
	for p, t := range v.On(at.Ref) {
		if p.Ref() == by && t.SamePlace(at) {
			return true
		}
	}
	return false
}

// OlderText says why another policy comes before one on the same target.
func OlderText(p *policykind.Policy, by snapshot.Object) string {
	if h, ok := by.(*policykind.Policy); ok && h.Created == p.Created {
		return "as old and first by name"
	}
	return "older"
}

// sectionHint explains that rule-N, which output calls a rule without a name, does not
// select the rule in most kinds.
func sectionHint(k *policykind.Kind, t api.Target) string {
	if k.Targets.UnnamedRules || t.Target.Group != api.GatewayGroup || !strings.HasPrefix(t.Section, "rule-") {
		return ""
	}
	return fmt.Sprintf(": policies of kind %s select a rule by its own name, not by its position", k.Kind)
}

// NoTarget returns that a policy of a kind has no target.
func NoTarget(k *policykind.Kind) string {
	const none = "it has no target"
	switch a := k.Attachment; {
	case a.Annotation != "" && a.ExtensionRef:
		return fmt.Sprintf("no annotation %s names it, and no filter of a route refers to it", a.Annotation)
	case a.ExtensionRef:
		return none + ", and no filter of a route refers to it"
	case a.ParametersRef:
		return "no parametersRef of a GatewayClass or Gateway names it"
	case a.Through != nil:
		return fmt.Sprintf("%s, and no %s of a GatewayClass or Gateway names it", none, a.Through.Kind)
	case a.Annotation != "":
		return fmt.Sprintf("no annotation %s names it", a.Annotation)
	default:
		return none
	}
}
