package policykind

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Place is where a policy is on a path, as far as it decides which of its rules have an effect
// there, in kinds with Ports, IgnoreOn or MergeOn.
type Place struct {
	// Route is the kind of the route, "" if the path has none.
	Route string
	// Merged is set if several policies are on the path.
	Merged bool
	// Listener is set for a policy on the listener itself.
	Listener bool
	// Beside is set if the backend has a policy of the kind that Kind.Beside returns.
	Beside bool
	// Unserved is set for a rule of a route without backends.
	Unserved bool
	// Port is that of the listener if a policy on the path has an item for it, else "".
	Port string
}

// HasPlaces reports whether the place of a policy of the kind decides which of its rules have
// an effect.
func (k *Kind) HasPlaces() bool {
	return len(k.ignoringRoutes) > 0 || len(k.IgnoreOn) > 0 || k.Ports != ""
}

// Beside returns the other kind whose policies on a backend decide which rules have an effect
// there, zero for none.
func (k *Kind) Beside() api.PolicyKind { return k.beside }

// HasPort reports whether the policy has an item for a port.
func (p *Policy) HasPort(port string) bool {
	return slices.ContainsFunc(p.places, func(at Place) bool { return at.Port == port })
}

// OnlyForPorts reports whether the policy is for listeners of certain ports alone.
func (p *Policy) OnlyForPorts() bool {
	some := slices.ContainsFunc(p.places, func(at Place) bool { return at.Port != "" && at.Port != otherPort })
	return some && !p.Sets(p.PartAt(Place{}))
}

// PartAt returns which of the policy's Parts applies at a place.
func (p *Policy) PartAt(at Place) int {
	k := p.Kind
	if !slices.Contains(k.ignoringRoutes, at.Route) {
		at.Route = ""
	}
	if at.Port != "" && !p.HasPort(at.Port) {
		at.Port = otherPort
	}
	at.Merged, at.Listener = at.Merged && k.ignoresMerged, at.Listener && k.ignoresListener
	at.Unserved = at.Unserved && k.ignoresUnserved
	return 1 + slices.Index(p.places, at)
}

func (k *Kind) ignoresBeside() bool { return k.beside != api.PolicyKind{} }

// Refuses reports whether a policy has a rule with which those on a kind of routes have no
// effect there.
func (k *Kind) Refuses(p *Policy, route string) bool { return k.refused(p, route) != "" }

// RefusesOn reports whether there are such rules for a kind of routes. A policy without any
// rule replaces none there.
func (k *Kind) RefusesOn(route string) bool {
	return slices.ContainsFunc(k.IgnoreOn, func(e api.IgnoredRules) bool { return e.Refused && e.Route == route })
}

// refused returns that rule, "" if there is none.
func (k *Kind) refused(p *Policy, route string) string {
	for i, e := range k.IgnoreOn {
		if !e.Refused || e.Route != route {
			continue
		}
		for _, b := range p.Blocks {
			for _, rule := range b.Rules {
				if slices.ContainsFunc(k.ignoredOn[i], func(s subtree) bool { return s.contains(rule.Key) }) {
					return rule.Key.String()
				}
			}
		}
	}
	return ""
}

// otherPort stands for the ports for which another policy has an item.
const otherPort = "other"

// places adds the places of the policy, and its part for each.
func (r *reader) places(root *field.Path) {
	k, p := r.kind, r.policy
	if !k.HasPlaces() {
		return
	}
	for _, route := range k.ignoringRoutes {
		alone := !slices.ContainsFunc(p.Targets, func(t Target) bool { return t.Ref.Kind != route })
		if rule := k.refused(p, route); rule != "" && alone {
			r.errs = append(r.errs, field.Forbidden(root.Child(rule), "may not be set in a policy on a "+route))
		}
	}
	ports := []string{otherPort}
	for _, b := range p.Blocks {
		for _, rule := range b.Rules {
			if port := k.portOf(rule.Key); port != "" && !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
	}
	p.places = []Place{{}}
	add := func(some bool, as func(*Place)) {
		for _, at := range p.places {
			if as(&at); some {
				p.places = append(p.places, at)
			}
		}
	}
	for _, route := range k.ignoringRoutes {
		p.places = append(p.places, Place{Route: route})
	}
	add(k.ignoresMerged, func(at *Place) { at.Merged = true })
	add(k.ignoresListener, func(at *Place) { at.Listener = true })
	add(k.ignoresBeside(), func(at *Place) { at.Beside = true })
	add(k.ignoresUnserved, func(at *Place) { at.Unserved = true })
	if k.Ports != "" {
		for _, at := range p.places {
			for _, port := range ports {
				at.Port = port
				p.places = append(p.places, at)
			}
		}
	}
	rules := 0
	for i, at := range p.places {
		part := r.partAt(at)
		for _, b := range part {
			rules += len(b.Rules)
		}
		if len(ports) > 1 && rules > maxPartRules {
			r.invalid(root.Child(k.Ports), i, "must have at most %d fields for all ports", maxPartRules)
			p.places = p.places[:i]
			return
		}
		p.Parts = append(p.Parts, part)
	}
}

// partAt returns the blocks of the policy without the rules that have no effect at a place.
func (r *reader) partAt(at Place) []merge.Rules {
	k, part := r.kind, slices.Clone(r.policy.Blocks)
	ignored := func(rule merge.Rule) bool {
		if of := k.portOf(rule.Key); of != "" && of != at.Port {
			return true
		}
		for i, e := range k.IgnoreOn {
			if at.in(e) && r.isOn(e.Target) && slices.ContainsFunc(k.ignoredOn[i], func(s subtree) bool { return s.contains(rule.Key) }) {
				return true
			}
		}
		return false
	}
	for i := range part {
		part[i].Rules = slices.DeleteFunc(slices.Clone(part[i].Rules), ignored)
		if slices.Contains(k.Strategy.MergeOn, at.Route) {
			part[i].Rules = k.byField(part[i].Rules)
		}
	}
	return part
}

// byField returns a rule for each top-level field of rules.
func (k *Kind) byField(rules []merge.Rule) []merge.Rule {
	all := merge.Result{Rules: make([]merge.Effective, len(rules))}
	for i, rule := range rules {
		all.Rules[i].Rule = &rule
	}
	spec := k.Shape(all.Spec())
	out := make([]merge.Rule, 0, len(spec))
	for _, name := range sortedKeys(spec) {
		out = append(out, merge.Rule{Key: merge.KeyOf(name), Value: spec[name]})
	}
	return out
}

// isOn reports whether a target of the policy is of a kind, "" for any.
func (r *reader) isOn(kind string) bool {
	return kind == "" || slices.ContainsFunc(r.policy.Targets, func(t Target) bool { return t.Ref.Kind == kind })
}

// in reports whether the place is one where the rules of an entry have no effect.
func (at Place) in(e api.IgnoredRules) bool {
	switch {
	case e.Where == api.IgnoredMerged:
		return at.Merged
	case e.Where == api.IgnoredPortItem:
		return at.Port != ""
	case e.Where == api.IgnoredListener:
		return at.Listener
	case e.Where == api.IgnoredAboveListener:
		return !at.Listener
	case e.Where == api.IgnoredNoBackends:
		return at.Unserved
	case e.Beside != "":
		return at.Beside
	default:
		return at.Route == e.Route
	}
}

// portOf returns the port of the item of the kind's Ports that a rule is in, "" for none.
func (k *Kind) portOf(rule merge.Key) string {
	if len(k.portItems) == 0 {
		return ""
	}
	if s := rule.Segments(); len(s) > len(k.portItems) && k.portItems.isPrefixOf(s) {
		return s[len(k.portItems)]
	}
	return ""
}
