package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// world writes the manifests of a number of routes, each with a policy of its own, on
// one gateway with a policy for each 1,000.
func world(t *testing.T, routes int) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for g := range max(1, routes/1000) {
		fmt.Fprintf(&b, `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge-%[1]d}
spec: {gatewayClassName: demo, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: gw-auth-%[1]d}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge-%[1]d}
  overrides: {strategy: merge, rules: {authentication: {sso: {jwt: {issuerUrl: "https://sso.example.com"}}}}}
`, g)
	}
	for i := range routes {
		fmt.Fprintf(&b, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app-%[2]d, name: route-%[1]d}
spec:
  parentRefs: [{namespace: infra, name: edge-%[3]d}]
  hostnames: [r%[1]d.example.com]
  rules: [{name: all, matches: [{path: {type: PathPrefix, value: /}}]}]
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app-%[2]d, name: auth-%[1]d}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-%[1]d}
  rules: {authentication: {sso: {jwt: {issuerUrl: "https://r%[1]d.example.com"}}}, authorization: {a: {value: 1}}}
`, i, i%100, i/1000)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(b.String()), 0o600))
	return dir
}

// The figures are for reading: nothing is asserted about time.
func TestLargeWorlds(t *testing.T) {
	for _, routes := range []int{1_000, 10_000} {
		t.Run(fmt.Sprint(routes), func(t *testing.T) {
			p := open(t, world(t, routes))
			for _, path := range []string{"/", "/o/HTTPRoute/app-7/route-7", "/o/Gateway/infra/edge-0", "/o/AuthPolicy.kuadrant.io/infra/gw-auth-0", "/o/GatewayClass/demo"} {
				p.visit(path)
				p.wait(`performance.getEntriesByName("first-contentful-paint").length > 0`)
				t.Logf("%d routes, %s: first paint %.0f ms, shown %.0f ms", routes, path,
					eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`), eval[float64](p, `performance.getEntriesByName("overrule-shown")[0].startTime`))
			}
			p.visit("/")
			p.run(chromedp.SendKeys("#search", "r77.exa"))
			p.waitText("#results", "route-77")
			p.wait(`performance.getEntriesByName("overrule-search").length > 0`) // those that the next key replaced have no entry
			t.Logf("%d routes: slowest search %.1f ms", routes, eval[float64](p, `Math.max(...performance.getEntriesByName("overrule-search").map((e) => e.duration))`))
		})
	}
}
