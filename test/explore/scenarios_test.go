package explore

import (
	"testing"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// All policies have a target that does not exist, where their evaluation can be held.
func paint(namespace, name, kind, target, spec string) string {
	return worlds.PolicyDoc("Paint", namespace, name, "targetRefs: [{group: gateway.networking.k8s.io, kind: "+kind+", name: "+target+"}, "+
		"{group: gateway.networking.k8s.io, kind: "+kind+", name: nowhere}]\n"+spec)
}

// scenarios returns writes of which each is allowed alone, and not all together.
func scenarios(t *testing.T) []*scenario {
	edge, other := worlds.GatewayDoc("edge", "class", "http"), worlds.GatewayDoc("other", "class", "http")
	route, away := worlds.RouteDoc("r", "[{}]", "edge"), worlds.RouteDoc("r", "[{}]", "other")
	limit := func(name, gateway string) string {
		return paint("infra", name, "Gateway", gateway, "overrides: {strategy: patch, when: 'spec.a > 50', a: 50}")
	}
	unbound := func(name string) string { return limit(name, "nowhere-else") }
	greedy := paint("app", "greedy", "HTTPRoute", "r", "a: 100")
	type sent struct {
		name string
		op   guard.Operation
		doc  string
	}
	var out []*scenario
	for _, c := range []struct {
		name    string
		initial []string
		writes  []sent
	}{
		{"other targets of the two policies with a limit", []string{edge, route, limit("one", "edge"), limit("two", "edge")}, []sent{
			{"one", guard.Update, unbound("one")}, {"two", guard.Update, unbound("two")},
		}},
		{"a route that moves and a policy with another target", []string{edge, other, route, limit("one", "edge"), limit("two", "other")}, []sent{
			{"route", guard.Update, away}, {"two", guard.Update, unbound("two")},
		}},
		{"creations of a limit and of what it excludes", []string{edge, route}, []sent{
			{"limit", guard.Create, limit("one", "edge")}, {"greedy", guard.Create, greedy},
		}},
		{"other targets of three policies with a limit", []string{edge, route, limit("one", "edge"), limit("two", "edge"), limit("three", "edge")}, []sent{
			{"one", guard.Update, unbound("one")}, {"two", guard.Update, unbound("two")}, {"three", guard.Update, unbound("three")},
		}},
	} {
		v := worlds.World(t, edge)
		read := func(doc string) snapshot.Object { return worlds.Read(t, v, doc) }
		s := &scenario{name: c.name, kinds: v.Kinds()}
		for _, doc := range c.initial {
			s.initial = append(s.initial, read(doc))
		}
		for _, w := range c.writes {
			s.writes = append(s.writes, write{w.name, w.op, read(w.doc)})
		}
		out = append(out, s)
	}
	return out
}

// two are the replicas of the exhaustive explorations.
func two() []string { return []string{"a", "b"} }
