package worlds

import (
	"fmt"
	"maps"
	"testing"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Shape is a crowd of objects, all alike, with any number of parts: every route of
// namespace app is on every listener of every gateway.
type Shape struct {
	// Gateways of a route, each with Listeners.
	Gateways, Listeners int
	// Routes on them, each with RouteRules of that many Matches (0 means 1).
	Routes, RouteRules, Matches int
	// Hostnames of a route: the same of all routes, or OwnHostnames of each.
	Hostnames    int
	OwnHostnames bool
	// Regex has the matches be regular expressions.
	Regex bool
	// Policies on a target, each with Rules: parts of the heavy cases.
	Policies, Rules int
}

// Paths returns the number of paths of all routes.
func (s Shape) Paths() int { return s.Gateways * s.Listeners * s.Routes * s.RouteRules }

// Objects returns the class, the namespace of the routes, the gateways and the routes.
func (s Shape) Objects() []Object { return s.objects(Shape.Route) }

func (s Shape) objects(route func(s Shape, i int) Object) []Object {
	out := []Object{crowdClass("before"), crowdNamespace("ours")}
	for g := range s.Gateways {
		out = append(out, s.Gateway(g))
	}
	for i := range s.Routes {
		out = append(out, route(s, i))
	}
	return out
}

// Gateway returns the i-th gateway. Each of its listeners allows routes of namespaces
// with the label team: ours.
func (s Shape) Gateway(i int) Object {
	return named(gatewayKind, infra, crowdGateway(i), Object{"gatewayClassName": "demo", "listeners": list(s.Listeners, func(l int) Object {
		return parse(`{"name":"http-%02d","protocol":"HTTP","port":%d,"allowedRoutes":{"namespaces":`+
			`{"from":"Selector","selector":{"matchLabels":{"team":"ours"}}}}}`, l, 8000+l)
	})})
}

// Route returns the i-th route.
func (s Shape) Route(i int) Object {
	spec := Object{
		"parentRefs": list(s.Gateways, func(g int) Object { return in(infra, reference(gatewayKind, crowdGateway(g))) }),
		"rules":      list(s.RouteRules, func(at int) Object { return s.rule(i, at) }),
	}
	if s.Hostnames > 0 {
		prefix := ""
		if s.OwnHostnames {
			prefix = crowdRoute(i) + "-"
		}
		spec["hostnames"] = hostnames(s.Hostnames, prefix)
	}
	return named(routeKind, app, crowdRoute(i), spec)
}

func (s Shape) rule(route, at int) Object {
	return Object{"matches": list(max(s.Matches, 1), func(m int) Object {
		if s.Regex {
			return parse(`{"path":{"type":"RegularExpression","value":"/%s/%d/%d/[a-z]+(/.*)?"}}`, crowdRoute(route), at, m)
		}
		return parse(`{"path":{"type":"PathPrefix","value":"/%s/%d/%d"}}`, crowdRoute(route), at, m)
	})}
}

// Neighbor returns another namespace, and the write of a route in it on the same listeners
// and hostnames as all of the shape: another path.
func (s Shape) Neighbor() (namespace Object, w Write) {
	namespace = crowdNamespace("ours")
	Meta(namespace)["name"] = neighbor
	Meta(namespace)["labels"].(Object)["kubernetes.io/metadata.name"] = neighbor
	return namespace, edited(func() Object {
		own := s
		own.RouteRules, own.Matches, own.Regex = 1, 1, false
		return named(routeKind, neighbor, "shop", Spec(own.Route(0)))
	}, func(spec Object) { spec["rules"] = []any{s.rule(0, 1)} })
}

// GatewayOverride returns overrides of the first gateway.
func (s Shape) GatewayOverride() Object { return edge(10)(s) }

const (
	app      = "app" // the namespace of the routes
	neighbor = "neighbor"
)

func crowdGateway(i int) string { return fmt.Sprintf("edge-%02d", i) }

func crowdRoute(i int) string { return fmt.Sprintf("r%05d", i) }

func hostnames(n int, prefix string) []any {
	return list(n, func(i int) string { return fmt.Sprintf("%sh%02d.example.com", prefix, i) })
}

func crowdClass(note string) Object {
	o := named(classKind, "", "demo", parse(`{"controllerName":"example.com/gateway-controller"}`))
	Meta(o)["labels"] = Object{"note": note}
	return o
}

func crowdNamespace(team string) Object {
	o := named(namespaceKind, "", app, Object{})
	Meta(o)["labels"] = Object{"team": team, "kubernetes.io/metadata.name": app}
	return o
}

// gatewayLimits returns a RateLimitPolicy of a gateway, with a block.
func gatewayLimits(gw int, name, block string, content Object) Object {
	return policyOf(gw, limitsKind, name, block, content)
}

func policyOf(gw int, kind api.PolicyKind, name, block string, content Object) Object {
	return named(kind, infra, name, Object{"targetRef": reference(gatewayKind, crowdGateway(gw)), block: content})
}

func ownLimits(route int, spec Object) Object { return ownPolicy(route, limitsKind, spec) }

// ownPolicy returns a policy of a route; it becomes the owner of spec.
func ownPolicy(route int, kind api.PolicyKind, spec Object) Object {
	spec["targetRef"] = reference(routeKind, crowdRoute(route))
	return named(kind, app, crowdRoute(route), spec)
}

// named returns an object that is as old as all others.
func named(kind api.PolicyKind, namespace, name string, spec Object) Object {
	o := object(kind, namespace, name, 0, spec)
	Meta(o)["uid"] = namespace + "-" + name
	return o
}

// limits returns the content of RateLimitPolicies.
func limits(of Object) Object { return Object{"limits": of} }

// rates returns the rates of a limit.
func rates(n ...int) Object {
	return Object{"rates": list(len(n), func(i int) Object { return Object{"limit": n[i], "window": "10s"} })}
}

// many returns n named values.
func many(n int, prefix string, value any) Object {
	out := make(Object, n)
	for i := range n {
		out[fmt.Sprintf("%s%04d", prefix, i)] = value
	}
	return out
}

// merged returns a block of a strategy.
func merged(content Object, when string) Object {
	content = maps.Clone(content)
	content["strategy"] = "merge"
	if when != "" {
		content["when"] = when
	}
	return content
}

// putAlike adds the policy of the first route to each route. Their content is in memory
// only once: only the evaluation is measured.
func (c *Cluster) putAlike(tb testing.TB, first Object, routes int) {
	tb.Helper()
	p := c.Decode(tb, first).(*policykind.Policy)
	changes := make([]snapshot.Change, routes)
	for i := range changes {
		one := *p
		one.Name, one.Version = crowdRoute(i), policykind.NextVersion()
		one.Targets = []policykind.Target{p.Targets[0]}
		one.Targets[0].Ref.Name = crowdRoute(i)
		changes[i] = snapshot.Put(&one)
	}
	c.Store.Apply(changes...)
}
