package hierarchy

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Path is one chain GatewayClass > Gateway > Listener > route > rule.
type Path struct {
	Gateway  *Gateway
	Listener int // in Gateway.Listeners
	Route    *Route
	Rule     int // in Route.Rules
}

// ID identifies a path across versions of its objects.
type ID struct {
	Class, GatewayNamespace, Gateway, Listener string
	RouteKind, RouteNamespace, Route           string
	Rule                                       int
}

// ID returns the identity of the path. A rule's is its position.
func (p Path) ID() ID {
	return ID{
		Class: p.Gateway.Class, GatewayNamespace: p.Gateway.Namespace, Gateway: p.Gateway.Name,
		Listener:  p.Gateway.Listeners[p.Listener].Name,
		RouteKind: p.Route.Kind, RouteNamespace: p.Route.Namespace, Route: p.Route.Name,
		Rule: p.Rule,
	}
}

// Elements returns the path as the JSON contract shows it.
func (p Path) Elements() []api.PathElement {
	index := p.Rule
	return []api.PathElement{
		{Kind: KindGatewayClass, Name: p.Gateway.Class},
		{Kind: KindGateway, Namespace: p.Gateway.Namespace, Name: p.Gateway.Name},
		{
			Kind: KindListener, Namespace: p.Gateway.Namespace, Name: p.Gateway.Name,
			Section: p.Gateway.Listeners[p.Listener].Name,
		},
		{Kind: p.Route.Kind, Namespace: p.Route.Namespace, Name: p.Route.Name},
		{
			Kind: p.Route.Kind + "Rule", Namespace: p.Route.Namespace, Name: p.Route.Name,
			Section: p.Route.RuleName(p.Rule), Index: &index,
		},
	}
}

// Element returns the element of the path at a level.
func (p Path) Element(l Level) api.PathElement {
	e := p.Elements()
	switch l {
	case LevelGatewayClass:
		return e[0]
	case LevelGateway:
		return e[1]
	case LevelListener:
		return e[2]
	case LevelRoute:
		return e[3]
	default:
		return e[4]
	}
}

// RuleName returns how a rule is shown: its name, or rule-N counted from 1.
func (r *Route) RuleName(i int) string {
	if r.Rules[i].Name != "" {
		return r.Rules[i].Name
	}
	return fmt.Sprintf("rule-%d", i+1)
}

// RuleAt reports whether a target's sectionName means the i-th rule: by its
// name, or as rule-N the unnamed N-th one, unless some rule is really named so
// (SEMANTICS section 5).
func (r *Route) RuleAt(section string, i int) bool {
	if r.Rules[i].Name != "" {
		return r.Rules[i].Name == section
	}
	return r.RuleName(i) == section && !r.named(section)
}

// HasSection reports whether some rule of the route is meant by section.
func (r *Route) HasSection(section string) bool {
	for i := range r.Rules {
		if r.RuleAt(section, i) {
			return true
		}
	}
	return false
}

func (r *Route) named(section string) bool {
	for i := range r.Rules {
		if r.Rules[i].Name == section {
			return true
		}
	}
	return false
}

// MatchRules pairs the rules of a route before and after an edit: by name,
// then by their matches in order, then, for what is left without a name, by
// position. It returns for each rule after its position before, or -1.
func MatchRules(before, after *Route) []int {
	taken := make([]bool, len(before.Rules))
	out := make([]int, len(after.Rules))
	for i := range out {
		out[i] = -1
	}
	pair := func(same func(b, a int) bool) {
		for a := range after.Rules {
			for b := range before.Rules {
				if out[a] < 0 && !taken[b] && same(b, a) {
					out[a], taken[b] = b, true
				}
			}
		}
	}
	pair(func(b, a int) bool {
		return before.Rules[b].Name != "" && before.Rules[b].Name == after.Rules[a].Name
	})
	pair(func(b, a int) bool { return before.Rules[b].Fingerprint == after.Rules[a].Fingerprint })
	pair(func(b, a int) bool {
		return a == b && before.Rules[b].Name == "" && after.Rules[a].Name == ""
	})
	return out
}
