package guard

import (
	"cmp"
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// objectCheck checks objects that are no policies, without the effective policies on their paths.
type objectCheck struct{ *requests }

// check checks an object that is no policy, before any path is evaluated.
func (ev objectCheck) check() {
	if ev.change.After != nil {
		ev.reportConflicts(ev.change.After.Ref())
	}
	ev.reportMissingReferences()
	switch o := ev.change.After.(type) {
	case *gateway.Route:
		ev.reportUnreadParents()
		ev.reportMissingParents("spec.parentRefs")
		ev.checkRoute(o)
	case *gateway.ListenerSet:
		ev.reportUnreadParents()
		ev.reportMissingParents("spec.parentRef")
		ev.checkListenerSet(o)
	case *gateway.Class:
		ev.checkClass(o)
	}
}

// reportConflicts reports the policies that the write brings to an object, by a label or an
// annotation, say, and that have no effect there because of others.
func (ev objectCheck) reportConflicts(object api.Ref) {
	for _, c := range ev.newConflicts(object) {
		ev.warn(api.ReasonConflicted, Finding{Policy: c.Policy.Ref(), Advice: conflictAdvice(c.Policy, c.By.Ref())},
			"%s would have no effect on %s: it already has %s, which is %s", c.Policy.Ref(), c.Target, c.By.Ref(), effective.OlderText(c.Policy, c.By))
	}
}

// checkListenerSet warns of a gateway that does not allow the listeners of a set.
func (ev objectCheck) checkListenerSet(s *gateway.ListenerSet) {
	g := ev.after.Gateway(s.GatewayNamespace, s.GatewayName)
	if g == nil || g.Sets.Allows(g.Namespace, s.Namespace, ev.after.NamespaceLabels(s.Namespace)) {
		return
	}
	ev.warn(api.ReasonTargetNotFound, Finding{Advice: fmt.Sprintf("ask the owner of %s", g.Ref().Key())},
		"%s has no effect: the allowedListeners of %s do not admit listener sets of namespace %s, so neither routes nor policies reach its listeners", s.Ref(), g.Ref(), s.Namespace)
}

// reportGrant reports which policies lose a target with a ReferenceGrant, unless that is said
// as the cause of lost rules.
func (ev objectCheck) reportGrant() {
	for _, o := range objects(ev.change) {
		g, ok := o.(*gateway.Grant)
		if !ok {
			return
		}
		for p := range ev.before.DependingOn(g) {
			ev.reportLostTargets(p)
		}
	}
}

func (ev objectCheck) reportLostTargets(p *policykind.Policy) {
	ref, was, is := p.Ref(), ev.before.Targets(p), ev.after.Targets(p)
	if ev.findings.any(func(f *Finding) bool { return f.Code == api.ReasonRulesLost && f.Policy == ref }) {
		return
	}
	for i, t := range is {
		if t.Grant && t.Refused != "" && was[i].Refused == "" {
			ev.warn(api.ReasonTargetNotFound, Finding{Policy: ref}, "%s loses its target: %s", ref, t.Refused)
		}
	}
}

// checkRoute reports what of a route is not supported.
func (ev objectCheck) checkRoute(r *gateway.Route) {
	old, _ := ev.change.Before.(*gateway.Route)
	ev.reportDelegation(delegates(old), delegates(r))
	if r.UsesDefaultGateways() {
		ev.warn(api.ReasonNotRead, Finding{Advice: "list the gateways in parentRefs"},
			"useDefaultGateways is experimental and ignored: effective policies through default gateways are unknown")
	}
}

// delegates returns the routes to which a route sends requests, none for nil.
func delegates(r *gateway.Route) []api.Ref {
	var out []api.Ref
	if r == nil {
		return out
	}
	for _, rule := range r.Rules {
		for _, b := range rule.Backends {
			if gateway.IsRoute(b.Object.PolicyKind()) && !slices.Contains(out, b.Object) {
				out = append(out, b.Object)
			}
		}
	}
	return out
}

// reportDelegation reports to which routes the write newly sends requests.
func (ev objectCheck) reportDelegation(was, is []api.Ref) {
	for _, to := range is {
		if !slices.Contains(was, to) {
			ev.warn(api.ReasonNotRead, Finding{Advice: "overrides are not enforced there: do not move rules there that depend on an override"},
				"delegation to %s is not read: effective policies on its rules are unknown", to)
		}
	}
}

// unsupportedParents returns the parents of a route or a listener set of unsupported kinds.
func unsupportedParents(o snapshot.Object) []api.Ref {
	switch o := o.(type) {
	case *gateway.Route:
		return o.Unread
	case *gateway.ListenerSet:
		return []api.Ref{o.Unread}
	default:
		return nil
	}
}

// reportUnreadParents reports which parents of unsupported kinds the write adds.
func (ev objectCheck) reportUnreadParents() {
	was := unsupportedParents(ev.change.Before)
	for _, p := range unsupportedParents(ev.change.After) {
		if p == (api.Ref{}) || p == gateway.DefaultGateways || slices.Contains(was, p) {
			continue
		}
		advice := "overrides are not enforced there: do not detach the route from a gateway whose overrides it depends on"
		if meant := effective.ParentKindMeant(p.Kind); meant != "" {
			advice = fmt.Sprintf("did you mean %s?", meant)
		}
		ev.warn(api.ReasonNotRead, Finding{Advice: advice}, "parent %s is of an unsupported kind: effective policies through it are unknown", withGroup(p))
	}
}

// reportMissingParents reports which parents that the write adds do not exist, or have no such
// listener. What the parentRef probably means is shown to readers of all objects, and of parents
// in the namespace of the object that is written.
func (ev objectCheck) reportMissingParents(field string) {
	for _, p := range newParents(ev.change) {
		why := effective.MissingParent(ev.after, p)
		if why == "" {
			continue
		}
		hint := ""
		if ev.reads(p.Namespace) {
			hint = effective.ParentHint(ev.after, p, ev.guard.ReadsAll)
		}
		ev.warn(api.ReasonTargetNotFound, Finding{Advice: cmp.Or(hint, "check the parentRef, or create its object"), Field: field},
			"a parentRef of %s has no effect: %s", ev.change.After.Ref(), why)
	}
}

// reportMissingReferences reports which policies to which the write newly refers, by a filter or
// a parametersRef, do not exist. Those of kinds that are not read may.
func (ev objectCheck) reportMissingReferences() {
	for _, r := range newReferences(ev.before, ev.change) {
		t := r.at
		if ev.after.Get(r.to) != nil {
			continue
		}
		by, field := "parametersRef of "+t.Ref.String(), "spec.parametersRef"
		switch {
		case t.AttachedBy == policykind.ExtensionRef:
			by, field = fmt.Sprintf("a filter of %s %s", t.Ref, t.Section), fmt.Sprintf("spec.rules[%d].filters", t.Rule)
		case t.Ref.Kind == gateway.KindGateway:
			field = "spec.infrastructure.parametersRef"
		}
		ev.warn(api.ReasonTargetNotFound, Finding{Advice: "check its name, or create it", Field: field}, "%s refers to %s, which does not exist", by, r.to)
	}
}

// checkClass warns of a class whose controller is not known: whether its gateways read
// policies of a kind cannot be decided.
func (ev objectCheck) checkClass(c *gateway.Class) {
	old, _ := ev.change.Before.(*gateway.Class)
	if old != nil && old.Controller == c.Controller || policykind.KnownController(c.Controller, ev.after.Kinds()) {
		return
	}
	ev.warn(api.ReasonNotRead, Finding{Advice: "if it reads only some kinds, list it under controllers in their PolicyProfiles"},
		"controller %s of %s is not known: policies of all kinds count on its gateways", c.Controller, c.Ref())
}
