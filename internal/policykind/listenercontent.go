package policykind

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/merge"
)

// HasPort reports whether the policy has an item for a port, in kinds with ListenerContents.
func (p *Policy) HasPort(port string) bool { return slices.Contains(p.ports, port) }

// OnlyForPorts reports whether the policy is for listeners of certain ports alone.
func (p *Policy) OnlyForPorts() bool { return len(p.ports) > 0 && !p.Sets(1) }

// ListenerPart returns which of the policy's Parts applies on a listener: own is set for a
// policy on the listener itself, named if a policy there has an item for the port.
func (p *Policy) ListenerPart(own, named bool, port string) int {
	part := 1
	if named {
		part += 2 * (2 + slices.Index(p.ports, port)) // 2 on, if it has no such item
	}
	if own {
		part++
	}
	return part
}

// listenerContents sets the parts of the policy for listeners, in the order of ListenerPart.
func (r *reader) listenerContents(root *field.Path) {
	p := r.policy
	if r.kind.ListenerContents == nil {
		return
	}
	for _, b := range p.Blocks {
		for _, rule := range b.Rules {
			if port := r.kind.portOf(rule.Key); port != "" && !slices.Contains(p.ports, port) {
				p.ports = append(p.ports, port)
			}
		}
	}
	rules := 0
	add := func(port string, named bool) {
		for _, own := range []bool{false, true} {
			part := slices.Clone(p.Blocks)
			for i := range part {
				part[i].Rules = slices.DeleteFunc(slices.Clone(part[i].Rules), func(rule merge.Rule) bool { return !r.kind.counts(rule.Key, own, named, port) })
				rules += len(part[i].Rules)
			}
			p.Parts = append(p.Parts, part)
		}
	}
	add("", false)
	add("", true)
	for i, port := range p.ports {
		if add(port, true); rules > maxPartRules {
			r.invalid(root, i, "must have at most %d fields for all ports", maxPartRules)
			return
		}
	}
}

// portOf returns the port of the item of ListenerContents that a rule is in, "" for none.
func (k *Kind) portOf(rule merge.Key) string {
	if s := rule.Segments(); len(s) > len(k.portItems) && k.portItems.isPrefixOf(s) {
		return s[len(k.portItems)]
	}
	return ""
}

// counts reports whether a rule has an effect on a listener (ListenerPart), where the policy
// has an item for the port, if port is not empty.
func (k *Kind) counts(rule merge.Key, own, named bool, port string) bool {
	in := func(list []subtree) bool {
		return slices.ContainsFunc(list, func(s subtree) bool { return s.contains(rule) })
	}
	of := k.portOf(rule)
	return (of == "" || of == port) && !(named && in(k.replaced)) && !(own && in(k.notOwn)) && (own || !in(k.onlyOwn))
}
