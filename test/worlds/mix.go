package worlds

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// Size of a Mix: gateways, routes and policies as in a large cluster, always the same
// for the same size. There are as many policies as gateways and routes.
//
// One gateway has half of the routes and three policies, the others share the rest,
// most of them a handful. Gateways have one to four listeners with hostnames, some
// select namespaces by their labels, every tenth has a ListenerSet. Routes have one to
// five rules, some with names, and one to three hostnames; some are on a single
// listener, some on two gateways. There are as many policies on gateways as gateways,
// and as many on routes as routes: some on sections, some with a condition; some routes
// have two and some none.
type Size struct {
	Gateways, Routes int
	// Busy is the number of routes on the busy gateway; 0 means half of them, or
	// all if it is the only gateway.
	Busy int
}

// Full is the size of the limits in docs/performance.md: 11,000 policies.
var Full = Size{Gateways: 1_000, Routes: 10_000}

// Busy is the index of the gateway with the most routes.
const Busy = 0

// seed makes the mix reproducible.
const seed = 2026

// Numbers of the mix, chosen so that each combination occurs among 200 routes or
// gateways.
const (
	namespaces   = 200
	hosts        = 3 // at most, of a route
	mostRules    = 5
	setEvery     = 10 // gateways: the sixth of each ten has a ListenerSet
	setAt        = 5
	policyCycle  = 20 // routes: of each twenty,
	policyRule   = 7  // this one's policy is on a rule,
	policyDouble = 18 // this one has two, the second on a rule,
	policyNone   = 19 // and this one none
)

// Objects yields every object of a size as an API server returns it, with the defaults
// of its CRD but without managedFields and status: namespaces, the class, gateways,
// listener sets, routes, policies of gateways, policies of routes. Specs have at most
// 1 KiB as JSON. The caller owns each object.
func Objects(size Size) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, part := range []struct {
			n      int
			object func(int) Object
		}{
			{1, func(int) Object { return namespace(infra, namespaces) }},
			{namespaces, func(i int) Object { return namespace(namespaceOf(i), i) }},
			{1, func(int) Object { return class() }},
			{size.Gateways, size.Gateway},
			{(size.Gateways + setEvery - 1 - setAt) / setEvery, func(i int) Object { return set(setAt + i*setEvery) }},
			{size.Routes, size.Route}, {size.Gateways, size.GatewayPolicy}, {size.Routes, size.RoutePolicy},
		} {
			for i := range part.n {
				if !yield(part.object(i)) {
					return
				}
			}
		}
	}
}

// busy returns how many routes are on the busy gateway. They come first.
func (s Size) busy() int {
	switch {
	case s.Gateways <= 1:
		return s.Routes
	case s.Busy > 0:
		return min(s.Busy, s.Routes)
	default:
		return s.Routes / 2
	}
}

// RoutesOf returns the routes on a gateway in their order.
func (s Size) RoutesOf(gw int) []int {
	var out []int
	for i := range s.Routes {
		if p := s.plan(i); p.gateway == gw || p.second == gw {
			out = append(out, i)
		}
	}
	return out
}

// plan describes a route.
type plan struct {
	gateway      int
	second       int    // another gateway of the route, -1 for none
	section      string // its only listener, "" for all
	set          bool   // attached to the gateway's ListenerSet instead
	hosts, rules int
	named        bool // its rules have names
}

// plan returns that of the i-th route. It depends only on i and the size.
func (s Size) plan(i int) plan {
	random := rand.New(rand.NewPCG(seed, uint64(i)))
	p := plan{second: -1}
	p.hosts, p.rules = 1+random.IntN(hosts), 1+random.IntN(mostRules)
	p.named = i%5 == 0 || i%policyCycle == policyRule || i%policyCycle == policyDouble
	if p.named {
		p.rules = min(p.rules, mostRules-1) // specs stay under 1 KiB
	}
	if i >= s.busy() {
		p.gateway = s.quiet(random)
		p.set = p.gateway%setEvery == setAt && random.IntN(2) == 0
	}
	if s.Gateways > 2 && i%20 == 3 {
		if other := s.quiet(random); other != p.gateway {
			p.second, p.rules = other, min(p.rules, mostRules-2)
		}
	}
	if !p.set && random.IntN(5) == 0 {
		p.section = listeners[0].name
	}
	return p
}

// quiet returns a random gateway other than the busy one: the first ones have up
// to a few percent of the routes, most have a handful.
func (s Size) quiet(random *rand.Rand) int {
	u := random.Float64()
	return 1 + int(u*u*float64(s.Gateways-1))
}

func namespaceOf(i int) string { return fmt.Sprintf("team-%03d", i%namespaces) }

func routeName(i int) string { return fmt.Sprintf("route-%05d", i) }

func gatewayName(i int) string { return fmt.Sprintf("gateway-%04d", i) }

func setName(gw int) string { return fmt.Sprintf("listeners-%04d", gw) }

// listeners of gateways. Each has the first one, two, three or four.
var listeners = []struct {
	name, protocol, hostname string
	port                     int
}{
	{"https", "HTTPS", "*.apps.example.com", 443},
	{"partners", "HTTPS", "*.partners.example.com", 443},
	{"internal", "HTTP", "*.internal.example", 8080},
	{"plain", "HTTP", "", 80},
}

// domains are those of a route's hostnames, each on the listener of the same
// position; listener "plain" allows them all.
var domains = []string{"apps.example.com", "partners.example.com", "internal.example"}

func listener(at, gw int) Object {
	l, from := listeners[at], `{"from":"All"}`
	if gw != Busy && gw%4 == 1 {
		from = `{"from":"Selector","selector":{"matchLabels":{"gateways":"shared"}}}`
	}
	out := parse(`{"name":%q,"protocol":%q,"port":%d,"allowedRoutes":{"namespaces":%s}}`, l.name, l.protocol, l.port, from)
	if l.hostname != "" {
		out["hostname"] = l.hostname
	}
	if l.protocol == "HTTPS" {
		out["tls"] = parse(`{"mode":"Terminate","certificateRefs":[{"group":"","kind":"Secret","name":%q}]}`, l.name)
	}
	return out
}

// Gateway returns the i-th gateway.
func (s Size) Gateway(i int) Object {
	n := 1 + i%len(listeners)
	if i == Busy {
		n = 2
	}
	spec := Object{"gatewayClassName": className, "listeners": list(n, func(at int) Object { return listener(at, i) })}
	if i%setEvery == setAt {
		spec["allowedListeners"] = parse(`{"namespaces":{"from":"All"}}`)
	}
	return object(gatewayKind, infra, gatewayName(i), i, spec)
}

// set returns the ListenerSet of a gateway that has one.
func set(gw int) Object {
	l := listener(0, gw)
	l["port"] = 8443
	return object(setKind, namespaceOf(gw), setName(gw), gw, Object{
		"parentRef": in(infra, reference(gatewayKind, gatewayName(gw))), "listeners": []any{l},
	})
}

func class() Object {
	return object(classKind, "", className, 0, parse(`{"controllerName":"example.com/gateway-controller"}`))
}

func namespace(name string, i int) Object {
	out := object(namespaceKind, "", name, i, parse(`{"finalizers":["kubernetes"]}`))
	Meta(out)["labels"] = parse(`{"kubernetes.io/metadata.name":%q,"gateways":"shared","tier":"tier-%d"}`, name, i%3)
	return out
}

// ruleNames and rulePaths are of the rules of routes, by position.
var (
	ruleNames = []string{"home", "api", "admin", "account", "static"}
	rulePaths = []string{"/", "/api", "/admin", "/account", "/static"}
)

// Route returns the i-th route.
func (s Size) Route(i int) Object { return s.plan(i).small(i) }

func (p plan) small(i int) Object {
	return p.route(i, p.rules, func(at int) Object {
		return parse(`{"matches":[{"path":{"type":"PathPrefix","value":%q}}],`+
			`"backendRefs":[{"group":"","kind":"Service","name":"app-%05d","port":8080,"weight":1}]}`, rulePaths[at], i)
	})
}

// LargeRoute returns the i-th route of about 3 KB as JSON, for writes: the same
// as Route except for its rules, always five, with headers, filters, two backends
// and timeouts.
func (s Size) LargeRoute(i int) Object {
	return s.plan(i).route(i, mostRules, func(at int) Object {
		return parse(`{"matches":[{"path":{"type":"PathPrefix","value":%q},"headers":[{"type":"Exact","name":"x-version","value":"v1"}]}],`+
			`"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":`+
			`[{"name":"x-team","value":%q},{"name":"x-forwarded-by","value":"platform"}]}}],`+
			`"backendRefs":[{"group":"","kind":"Service","name":"app-%05d","port":8080,"weight":90},`+
			`{"group":"","kind":"Service","name":"app-%05d-canary","port":8080,"weight":10}],"timeouts":{"request":"10s"}}`,
			rulePaths[at], namespaceOf(i), i, i)
	})
}

func (p plan) route(i, rules int, rule func(at int) Object) Object {
	parents := []any{p.parent()}
	if p.second >= 0 {
		parents = append(parents, in(infra, reference(gatewayKind, gatewayName(p.second))))
	}
	return object(routeKind, namespaceOf(i), routeName(i), i, Object{
		"parentRefs": parents,
		"hostnames":  list(p.hosts, func(at int) string { return routeName(i) + "." + domains[at] }),
		"rules": list(rules, func(at int) Object {
			out := rule(at)
			if p.named {
				out["name"] = ruleNames[at]
			}
			return out
		}),
	})
}

// parent returns the first parent.
func (p plan) parent() Object {
	if p.set {
		return in(namespaceOf(p.gateway), reference(setKind, setName(p.gateway)))
	}
	out := in(infra, reference(gatewayKind, gatewayName(p.gateway)))
	if p.section != "" {
		out["sectionName"] = p.section
	}
	return out
}
