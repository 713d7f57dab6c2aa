package worlds

import (
	"fmt"
	"testing"
)

// Uniform is a cluster of one gateway with one listener and routes that are all
// alike, for costs that depend on the number of routes or paths of a write.
type Uniform struct {
	// Routes on the gateway, each with that many Rules (0 means 1), and as many
	// paths.
	Routes, Rules int
	// OwnPolicy adds a different RateLimitPolicy to each route.
	OwnPolicy bool
	// When adds a condition to the gateway's policy that each route's own policy
	// satisfies.
	When bool
}

// Cluster returns such a cluster, with a RateLimitPolicy on the gateway.
func (u Uniform) Cluster(tb testing.TB) *Cluster {
	tb.Helper()
	c := Empty(tb)
	c.Size = Size{Gateways: 1, Routes: u.Routes}
	objects := []Object{class(), object(gatewayKind, infra, gatewayName(Busy), Busy, Object{
		"gatewayClassName": className, "listeners": []any{listener(len(listeners)-1, Busy)},
	}), u.GatewayPolicy(0)}
	for i := range u.Routes {
		objects = append(objects, u.Route(i))
		if u.OwnPolicy {
			objects = append(objects, u.RoutePolicy(i))
		}
	}
	c.Put(tb, objects...)
	return c
}

// GatewayPolicy returns the policy of the gateway after n writes, each of which
// changes the value of its only rule on every path of the gateway.
func (u Uniform) GatewayPolicy(n int) Object {
	when := ""
	if u.When {
		when = condition
	}
	policy := onGateway(limitsKind, 0, Busy, "", limitsBlock("overrides", when, fmt.Sprintf("%ds", 10+n), false))
	Meta(policy)["resourceVersion"] = fmt.Sprint(100_000 + n) // each another state
	return policy
}

// Route returns the i-th route.
func (u Uniform) Route(i int) Object {
	return plan{gateway: Busy, second: -1, hosts: 1, rules: max(u.Rules, 1)}.small(i)
}

// RoutePolicy returns the policy of the i-th route.
func (u Uniform) RoutePolicy(i int) Object {
	return on(reference(routeKind, routeName(i)), limitsKind, namespaceOf(i), fmt.Sprintf("policy-%05d", i), 1+i, routeLimits(i, 60+i))
}
