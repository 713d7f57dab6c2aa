package worlds

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// extras is the number of additional policies of the busy gateway. The last
// gateways have none, so that there are as many policies as gateways.
const extras = 2

// condition replaces limits that are too high.
const condition = "spec.limits.requests.rates.exists(r, r.limit > 50)"

// GatewayPolicy returns the i-th of the gateways' policies. The first three are
// those of the busy gateway: an AuthPolicy with overrides, a RateLimitPolicy with
// overrides under a condition, an AuthPolicy with defaults on a listener.
func (s Size) GatewayPolicy(i int) Object {
	gw, sort := i-extras, 0
	switch {
	case i < extras:
		gw, sort = Busy, i
	case i == extras:
		gw, sort = Busy, 6
	default:
		sort = gw % 8
	}
	switch sort {
	case 0, 4:
		return onGateway(authKind, i, gw, "", authBlock("overrides", "merge", 2))
	case 1, 5:
		return onGateway(limitsKind, i, gw, "", limitsBlock("overrides", condition, "10s", true))
	case 2:
		return onGateway(authKind, i, gw, "", authBlock("defaults", "atomic", 4))
	case 6:
		return onGateway(authKind, i, gw, listeners[0].name, authBlock("defaults", "merge", 3))
	case 3:
		return onGateway(limitsKind, i, gw, "", limitsBlock("defaults", "", "10s", true))
	default:
		return onGateway(limitsKind, i, gw, listeners[0].name, limitsBlock("overrides", "", "10s", true))
	}
}

func onGateway(kind api.PolicyKind, i, gw int, section string, spec Object) Object {
	target := reference(gatewayKind, gatewayName(gw))
	if section != "" {
		target["sectionName"] = section
	}
	return on(target, kind, infra, fmt.Sprintf("policy-%04d", i), i, spec)
}

// authBlock is a platform team's block of authentication and authorization.
// Overrides only have the latter: every route has its own authentication rules,
// which would weaken an override of authentication.
func authBlock(block, strategy string, rules int) Object {
	authentication, authorization := Object{}, Object{}
	for i := range rules {
		authentication[fmt.Sprintf("issuer-%d", i)] = parse(`{"jwt":{"issuerUrl":"https://sso-%d.example.com/realms/platform","ttl":300},"priority":%d}`, i, i)
		authorization[fmt.Sprintf("no-robots-%d", i)] = noRobots(fmt.Sprintf("robot-%d", i))
	}
	content := Object{"authorization": authorization}
	if block != "overrides" {
		content = Object{"authentication": authentication, "authorization": Object{"no-robots": noRobots("robot")}}
	}
	return Object{block: Object{"strategy": strategy, "rules": content}}
}

func noRobots(name string) Object {
	return parse(`{"patternMatching":{"patterns":[{"predicate":"!request.headers['user-agent'].contains('%s')"}]}}`, name)
}

func limitsBlock(block, when, window string, counted bool) Object {
	b := parse(`{"strategy":"merge","limits":{"requests":{"rates":[{"limit":50,"window":%q}],"counters":[{"expression":"auth.identity.userid"}]}}}`, window)
	if !counted {
		delete(b["limits"].(Object)["requests"].(Object), "counters")
	}
	if when != "" {
		b["when"] = when
	}
	return Object{block: b}
}

// RoutePolicy returns the j-th of the routes' policies.
func (s Size) RoutePolicy(j int) Object {
	route, rule := policyTarget(j)
	target := reference(routeKind, routeName(route))
	if rule {
		target["sectionName"] = ruleNames[0]
	}
	kind, spec := authKind, routeAuth(j)
	if limited(j) {
		kind, spec = limitsKind, routeLimits(j, 10+j*37%80)
	}
	return on(target, kind, namespaceOf(route), fmt.Sprintf("policy-%05d", j), s.Gateways+j, spec)
}

// policyTarget returns the target of the j-th of the routes' policies: the route,
// and whether it is a rule of that.
func policyTarget(j int) (route int, rule bool) {
	if j%policyCycle == policyNone {
		return j - 1, true
	}
	return j, j%policyCycle == policyRule
}

// limited reports whether the j-th of the routes' policies is a RateLimitPolicy. A
// second policy of a route has the kind of the first.
func limited(j int) bool {
	route, _ := policyTarget(j)
	return route%2 == 1
}

// routeAuth returns a team's AuthPolicy: two authentication rules, and
// authorization.
func routeAuth(j int) Object {
	return parse(strings.ReplaceAll(`{"rules":{"authentication":{`+
		`"api-key":{"apiKey":{"selector":{"matchLabels":{"app":"NAME"}},"allNamespaces":false},"credentials":{"authorizationHeader":{"prefix":"APIKEY"}}},`+
		`"partners":{"jwt":{"issuerUrl":"https://partners.example.com/NAME"}}},"authorization":{`+
		`"admins":{"patternMatching":{"patterns":[{"predicate":"auth.identity.groups.exists(g, g == 'admins')"}]}},`+
		`"readers":{"patternMatching":{"patterns":[{"predicate":"request.method == 'GET' && auth.identity.team == '%s'"}]}}},`+
		`"response":{"success":{"headers":{"x-user":{"plain":{"expression":"auth.identity.userid"}}}}}}}`, "NAME", routeName(j)), namespaceOf(j))
}

// routeLimits is the RateLimitPolicy of a team.
func routeLimits(j, limit int) Object {
	return parse(`{"limits":{"requests":{"rates":[{"limit":%d,"window":"10s"},{"limit":%d,"window":"1h"}],"counters":[{"expression":"auth.identity.userid"}]},`+
		`"writes":{"rates":[{"limit":5,"window":"1m"}],"when":[{"predicate":"request.method == 'POST' || request.method == 'PUT'"}]},`+
		`"exports":{"rates":[{"limit":%d,"window":"1h"}],"when":[{"predicate":"request.path.startsWith('/api/export')"}]}}}`, limit, limit*100, 2+j%5)
}
