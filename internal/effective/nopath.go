package effective

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// NoPath returns why no path goes through a target on which a policy is accepted, and
// advice. The policy must be on no path.
//
// It shows only names, and of objects in other namespaces than the target's only those
// that objects in the target's namespace refer to: the reader may not be allowed to read
// them.
func NoPath(v *snapshot.View, p *policykind.Policy, t api.Target) (why, advice string) {
	if why := NoLevelReason(p, t); why != "" {
		return why, ""
	}
	d := noPathReason{
		view: v, kind: p.Kind, shape: shapeOf(p.Kind),
		target:   referenceOf(v, p, t),
		consumer: p.Kind.Targets.Namespaces == api.NamespacesConsumer && t.Target.Namespace != p.Namespace,
	}
	switch o := v.Get(t.Target).(type) {
	case *gateway.Route:
		why, advice = d.route(o, d.target), "change that or choose another target"
	case *gateway.ListenerSet:
		why, advice = d.listenerSet(o), "it takes effect on routes that are attached later"
	default:
		if d.isBackend() {
			why, advice = d.backend(), "it takes effect on routes that do so later"
		} else {
			why, advice = d.rootOrAbove(), "it takes effect on routes that are attached later"
		}
	}
	switch {
	case why != "":
		return why, advice
	case d.consumer:
		return fmt.Sprintf("policies in namespace %s apply only to clients of that namespace, and none of their paths goes through %s", p.Namespace, d.target), ""
	default:
		return fmt.Sprintf("no path for policies of kind %s goes through %s", p.Kind.Kind, d.target), ""
	}
}

// referenceOf returns a target of a policy, with the rule whose filter refers to the policy.
func referenceOf(v *snapshot.View, p *policykind.Policy, t api.Target) policykind.Target {
	out := policykind.Target{Ref: t.Target, Section: t.Section, Port: t.Port, AttachedBy: t.AttachedBy}
	if t.AttachedBy == policykind.ExtensionRef {
		for _, o := range v.Targets(p) {
			if o.AttachedBy == t.AttachedBy && o.Ref == t.Target && o.Section == t.Section {
				return o
			}
		}
	}
	return out
}

// Pathless returns an Effective for a policy that is on no path. Its path has only the
// first target, or the policy itself if that has no name. No rule is in force there.
func Pathless(p *policykind.Policy) *Effective {
	at := p.Ref()
	if len(p.Targets) > 0 && p.Targets[0].Ref.Name != "" {
		at = p.Targets[0].Ref
	}
	return &Effective{
		Kind: p.Kind, Path: gateway.Path{Virtual: &at, Rule: -1}, Result: &merge.Result{},
		Layers:   []merge.Layer{{Policy: &p.Policy, Level: int(gateway.LevelBackend)}},
		Outcomes: []merge.Outcome{{Policy: &p.Policy}},
	}
}

// NoLevelReason returns why a policy has no effect on an allowed target: its kind has no
// level for the target. It is empty if the kind has one.
func NoLevelReason(p *policykind.Policy, t api.Target) string {
	switch {
	case p.Kind.HasLevelAt(t):
		return ""
	case p.Kind.Source == policykind.Label:
		return fmt.Sprintf("policies of kind %s are not supported on %s: create a PolicyProfile (the CRD has only the policy label)",
			p.Kind.Kind, t.Target.Kind)
	default:
		return fmt.Sprintf("policies of kind %s are not supported at %s: supported levels: %s",
			p.Kind.Kind, policykind.Target{Ref: t.Target, Section: t.Section, Port: t.Port}, levelNamesOf(p.Kind))
	}
}

func levelNamesOf(k *policykind.Kind) string {
	out := make([]string, len(k.Levels))
	for i, l := range k.Levels {
		out[i] = string(l)
	}
	return strings.Join(out, ", ")
}
