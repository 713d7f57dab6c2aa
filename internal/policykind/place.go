package policykind

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Place is where a policy is on a path, as far as it decides which of its rules have an effect
// there, in kinds with Ports or IgnoreOn.
type Place struct {
	// Route is the kind of the route, "" if the path has none.
	Route string
	// Merged is set if several policies are on the path.
	Merged bool
	// Listener is set for a policy on the listener itself.
	Listener bool
	// Port is that of the listener if a policy on the path has an item for it, else "".
	Port string
}

// HasPlaces reports whether the place of a policy of the kind decides which of its rules have
// an effect.
func (k *Kind) HasPlaces() bool { return len(k.IgnoreOn) > 0 || k.Ports != "" }

// HasPort reports whether the policy has an item for a port.
func (p *Policy) HasPort(port string) bool { return slices.Contains(p.ports, port) }

// OnlyForPorts reports whether the policy is for listeners of certain ports alone.
func (p *Policy) OnlyForPorts() bool { return len(p.ports) > 0 && !p.Sets(p.PartAt(Place{})) }

// PartAt returns which of the policy's Parts applies at a place. It is the position in the
// order of places.
func (p *Policy) PartAt(at Place) int {
	k, part := p.Kind, 1+slices.Index(p.Kind.ignoringRoutes, at.Route)
	if k.ignoresMerged {
		part *= 2
		if at.Merged {
			part++
		}
	}
	if k.ignoresListener {
		part *= 2
		if at.Listener {
			part++
		}
	}
	part *= 2 + len(p.ports)
	if at.Port != "" {
		part += 2 + slices.Index(p.ports, at.Port) // 1 for another policy's port
	}
	return 1 + part
}

// otherPort stands for the ports for which another policy has an item.
const otherPort = "other"

// places adds the parts of the policy for its places.
func (r *reader) places(root *field.Path) {
	k, p := r.kind, r.policy
	if !k.HasPlaces() {
		return
	}
	for _, b := range p.Blocks {
		for _, rule := range b.Rules {
			if port := k.portOf(rule.Key); port != "" && !slices.Contains(p.ports, port) {
				p.ports = append(p.ports, port)
			}
		}
	}
	either := func(both bool) []bool {
		if both {
			return []bool{false, true}
		}
		return []bool{false}
	}
	rules := 0
	for _, route := range append([]string{""}, k.ignoringRoutes...) {
		for _, merged := range either(k.ignoresMerged) {
			for _, listener := range either(k.ignoresListener) {
				for i, port := range append([]string{"", otherPort}, p.ports...) {
					part := r.partAt(Place{route, merged, listener, port})
					for _, b := range part {
						rules += len(b.Rules)
					}
					if i > 1 && rules > maxPartRules {
						r.invalid(root.Child(k.Ports), i, "must have at most %d fields for all ports", maxPartRules)
						return
					}
					p.Parts = append(p.Parts, part)
				}
			}
		}
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
	}
	return part
}

// isOn reports whether a target of the policy is of a kind, "" for any.
func (r *reader) isOn(kind string) bool {
	return kind == "" || slices.ContainsFunc(r.policy.Targets, func(t Target) bool { return t.Ref.Kind == kind })
}

// in reports whether the place is one where the rules of an entry have no effect.
func (at Place) in(e api.IgnoredRules) bool {
	switch e.Where {
	case api.IgnoredMerged:
		return at.Merged
	case api.IgnoredPortItem:
		return at.Port != ""
	case api.IgnoredListener:
		return at.Listener
	case api.IgnoredAboveListener:
		return !at.Listener
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
