package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/worlds"
)

// boundDye is the profile of dye, whose overrides of routes bind writes of routes in these
// namespaces; "" for the default.
func boundDye(namespaces string) string {
	if namespaces == "" {
		return dye
	}
	return strings.Replace(dye, "shortPaths:", "routeOverridesBind: "+namespaces+"\n  shortPaths:", 1)
}

// hostRouteIn is a route of a namespace on one hostname, with a rule.
func hostRouteIn(namespace, rule string) string {
	doc := worlds.RouteTo("HTTPRoute", namespace, "new", "["+rule+"]", worlds.ToGateway("g"))
	return strings.Replace(doc, "spec:\n", "spec:\n  hostnames: [shop.example.com]\n", 1)
}

// SEMANTICS section 9: an override on a route, or below it, binds other routes in its
// namespace. A route of another namespace that takes its requests is a warning, and a
// denial where the kind's profile says so.
func TestRouteOverridesBind(t *testing.T) {
	const toB, toC = "{backendRefs: [{name: b, namespace: app, port: 80}]}", "{backendRefs: [{name: c, namespace: shop, port: 80}]}"
	at := docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "["+toB+"]", "g"), worlds.ServiceDoc("app", "b", 80), worlds.ServiceDoc("shop", "c", 80),
		worlds.GrantDoc("app", "t", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", `{group: "", kind: Service}`),
		worlds.GrantDoc("shop", "t", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", `{group: "", kind: Service}`))
	of := func(target string) string { return docs(at, dyed("app", "top", target)) }
	const route, rule = "{kind: HTTPRoute, name: r}", "{kind: HTTPRoute, name: r, sectionName: rule-1}"
	const app, gateway, backend = `{group: "", kind: Namespace, name: app}`, "{kind: Gateway, namespace: infra, name: g}", `{group: "", kind: Service, name: b}`
	lost := func(served ...string) []string { return evadedOn("Dye app/top", "Service app/b#80", served...) }
	moreHosts := strings.Replace(hostRouteIn("shop", toC), "shop.example.com", "shop.example.com, a.example", 1)
	for name, test := range map[string]struct {
		before, write string
		want          []string
		anyway        bool // whatever the profile says
	}{
		"of a route":                  {before: of(route), write: hostRouteIn("shop", toC), want: lost("Service shop/c#80")},
		"of a rule":                   {before: of(rule), write: hostRouteIn("shop", toB), want: lost()},
		"of the namespace of a route": {before: of(app), write: hostRouteIn("shop", toB), want: lost()},
		"of a route, by a route with one hostname more": {before: docs(of(route), hostRouteIn("shop", toC)), write: moreHosts, want: lost("Service shop/c#80")},
		"of a route, by a route of its namespace":       {before: of(route), write: hostRouteIn("app", toB), want: lost(), anyway: true},
		"of a backend, by a rule to another one":        {before: of(backend), write: hostRouteIn("shop", toC), want: lost("Service shop/c#80")},
		"of a backend, by a rule of its route":          {before: of(backend), write: routeDoc("r", "["+toC+"]", "g"), want: lost("Service shop/c#80"), anyway: true},
		"of the gateway, on which the new route is":     {before: of(gateway), write: hostRouteIn("shop", toC)},
		"of the route that is written":                  {before: of(route), write: routeDoc("r", "["+toC+"]", "g"), anyway: true},
	} {
		for _, namespaces := range []string{"AllNamespaces", "SameNamespace", ""} {
			t.Run(name+"/"+namespaces, func(t *testing.T) {
				w := overrideCase{before: docs(boundDye(namespaces), test.before), write: test.write, of: "Dye app/top", want: test.want}
				if test.anyway || namespaces == "AllNamespaces" {
					w.run(t)
					return
				}
				v := world(t, w.before)
				c := w.change(t, v)
				var warnings []string
				for _, what := range w.want {
					warnings = append(warnings, "Warn "+what)
				}
				assert.Equal(t, warnings, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override"))
				assert.Equal(t, warnings, findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, c), "Override"))
				assert.NotEmpty(t, evaluateUnlisted(t, bossAndDev(), "dev", withoutList(v, "Dye"), c), "what is attached there is not known")
			})
		}
	}
}
