package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var demoWorld = []string{
	"-f", "../../../examples/demo/00-cluster.yaml", "-f", "../../../examples/demo/10-gateway-policies.yaml",
	"-f", "../../../examples/demo/20-route-auth.yaml", "-f", "../../../examples/demo/31-route-limits.yaml",
}

// demoImage is the picture in README.md.
const demoImage = "../../../../../docs/images/demo.svg"

// The pictures were looked at before they became golden files.
func TestGoldenGraphs(t *testing.T) {
	demo := func(args ...string) []string { return append(append([]string{"graph"}, args...), demoWorld...) }
	shapes := func(args ...string) []string {
		return append([]string{"graph", "-f", "testdata/shapes.yaml"}, args...)
	}
	for name, args := range map[string][]string{
		"graph-demo.mmd":      demo(),
		"graph-demo.dot":      demo("-o", "dot"),
		demoImage:             demo("-o", "svg"),
		"graph-route.mmd":     demo("-n", "app", "httproute/toystore"),
		"graph-policy.mmd":    demo("-n", "app", "authpolicy/toystore-auth"),
		"graph-namespace.mmd": demo("-n", "infra"),
		"graph-kind.mmd":      demo("--kind", "RateLimitPolicy"),
		"graph-shapes.mmd":    shapes("-A"),
		"graph-shapes.svg":    shapes("-A", "-o", "svg"),
		"graph-losses.mmd":    {"graph", "-A", "-f", "testdata/losses.yaml"},
		"graph-gep713.mmd":    append(gep713("3"), "graph"),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, run(t, "", args...)) })
	}
}

// Routes with equal outcomes are one box; the picture stays small enough for GitHub.
func TestGraphOfManyRoutes(t *testing.T) {
	var manifests strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&manifests, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: route-%d}
spec:
  parentRefs: [{namespace: infra, name: edge}]
  rules: [{name: main}]
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: auth-%d}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-%d}
  rules: {authentication: {sso: {jwt: {}}}, authorization: {rule-%d: {opa: {}}}}
`, i, i, i, i%3)
	}
	got := run(t, manifests.String(), append([]string{"graph", "-f", "-"}, demoWorld...)...)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "334 HTTPRoutes<br/><b>app/route-0, app/route-102, app/route-105 and 331 more</b>")
	assert.Equal(t, 2, strings.Count(got.stdout, "333 HTTPRoutes<br/>"))
	assert.Contains(t, got.stdout, "<s>rules.authentication.sso</s> – replaced by infra/gw-auth")
	assert.Contains(t, got.stderr, "1,001 HTTPRoutes in 4 boxes")
	assert.Less(t, len(got.stdout), 50_000)
	assert.Less(t, strings.Count(got.stdout, "--"), 500)
}

func TestGraphErrors(t *testing.T) {
	assertErrors(t, append([]string{"graph"}, demoWorld...), map[string]errorCase{
		"not found":    {[]string{"httproute/none"}, exitNegative, "not found"},
		"format":       {[]string{"-o", "json"}, exitError, `invalid value "json" for --output: must be one of mermaid, dot, svg`},
		"unknown kind": {[]string{"--kind", "NoPolicy"}, exitError, "invalid --kind"},
	})
}

// Without a path the picture is valid, and has the policies that are on none.
func TestGraphWithoutPath(t *testing.T) {
	got := run(t, "", "graph", "-f", "../../../examples/demo/10-gateway-policies.yaml", "-A")
	require.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stdout, "<b>On no path</b><br/>AuthPolicy infra/gw-auth – ")
	assert.Contains(t, got.stderr, "no effective policies found")
}
