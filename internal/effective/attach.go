package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// attachment is a policy on a target of it.
type attachment struct {
	policy  *policykind.Policy
	section string
}

// attachments calls take with the policies that are accepted on an object, and
// with the index of their kind.
func attachments(v *store.View, kinds []*policykind.Kind, object api.Ref, take func(kind int, a attachment)) {
	for p := range v.AllPoliciesOn(object) {
		kind := slices.IndexFunc(kinds, func(k *policykind.Kind) bool { return k.Ref() == p.Kind.Ref() })
		if kind < 0 || p.Invalid != nil {
			continue
		}
		for _, t := range p.Targets {
			if t.Ref == object && t.Refused == "" && Holder(v, p, t) == p {
				take(kind, attachment{p, t.Section})
			}
		}
	}
}

// Holder returns the policy that holds a target of p: p itself, unless the
// kind takes only one policy on a target and an older one is there (SEMANTICS
// section 5, sameTarget none).
func Holder(v *store.View, p *policykind.Policy, t policykind.Target) *policykind.Policy {
	holder := p
	if p.Kind.SameTarget != policykind.None {
		return holder
	}
	for other := range v.PoliciesOn(t.Ref, p.Kind.Ref()) {
		if other.Invalid == nil && other.Has(t) && older(other, holder) {
			holder = other
		}
	}
	return holder
}

func older(a, b *policykind.Policy) bool {
	return merge.Compare(merge.Layer{Policy: &a.Policy}, merge.Layer{Policy: &b.Policy}) < 0
}

// stack is the policies of one kind on one path.
type stack struct {
	layers   []merge.Layer
	versions []uint64
}

func (s *stack) add(p *policykind.Policy, l hierarchy.Level) {
	s.layers = append(s.layers, merge.Layer{Policy: &p.Policy, Level: int(l)})
	s.versions = append(s.versions, p.Version)
}

// above holds what falls on all paths of one gateway or one route, of a kind.
type above struct{ class, gateway, route []attachment }

// stack puts the layers of a path together.
func (a *above) stack(p hierarchy.Path) stack {
	most := len(a.class) + len(a.gateway) + len(a.route)
	if most == 0 {
		return stack{}
	}
	s := stack{layers: make([]merge.Layer, 0, most), versions: make([]uint64, 0, most)}
	for _, at := range a.class {
		if at.section == "" {
			s.add(at.policy, hierarchy.LevelGatewayClass)
		}
	}
	for _, at := range a.gateway {
		switch at.section {
		case "":
			s.add(at.policy, hierarchy.LevelGateway)
		case p.Gateway.Listeners[p.Listener].Name:
			s.add(at.policy, hierarchy.LevelListener)
		}
	}
	for _, at := range a.route {
		switch {
		case at.section == "":
			s.add(at.policy, hierarchy.LevelRoute)
		case p.Route.RuleAt(at.section, p.Rule):
			s.add(at.policy, hierarchy.LevelRule)
		}
	}
	return s
}
