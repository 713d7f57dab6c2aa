package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// affectingPolicies returns the names of the policies that affect an object.
func affectingPolicies(t *testing.T, args ...string) []string {
	t.Helper()
	got := run(t, "", append([]string{"reach", "--affecting", "-o", "json"}, args...)...)
	require.Equal(t, exitOK, got.code, got.stderr)
	names := []string{}
	for _, r := range decode[api.ReachList](t, got.stdout).Items {
		assert.Positive(t, r.Paths.Holding)
		names = append(names, r.Policy.Name)
	}
	return names
}

// GEP-713, Examples 2 and 3: outcomes 5 and 6 for the backends; the others by
// the same rule. An object is affected where a rule of the policy survives on a
// path through it.
func TestReachAffectingGEP713(t *testing.T) {
	for object, want := range map[string][2][]string{ // in Example 2, in Example 3
		"service/b1":    {{"p1", "p2", "p3"}, {"p1", "p2", "p3"}},
		"service/b2":    {{"p3"}, {"p3", "p4"}},
		"gateway/g1":    {{"p1", "p2"}, {"p1", "p2"}},
		"gateway/g2":    {{"p3"}, {"p3", "p4"}},
		"httproute/r1":  {{"p2"}, {"p2"}},
		"httproute/r2":  {{"p1"}, {"p1"}},
		"httproutes/r3": {{"p3"}, {"p3"}},
		"httproute r4":  {{"p3"}, {"p3", "p4"}},
	} {
		for i, example := range []string{"2", "3"} {
			assert.Equal(t, want[i], affectingPolicies(t, append(gep713(example), strings.Fields(object)...)...), "%s in Example %s", object, example)
		}
	}
}

func TestReachAffectingAllShapes(t *testing.T) {
	all := func(args ...string) []string {
		return affectingPolicies(t, append([]string{"-f", "testdata/shapes.yaml", "-A"}, args...)...)
	}
	for object, want := range map[string][]string{
		"gatewayclass/demo": {"tls", "gcp", "slow", "gwt", "allow", "authz"},
		"gtw/edge":          {"tls", "gcp", "slow", "gwt", "allow", "authz"},
		"lset/more":         {"tls", "slow", "gwt"},
		"svc/toys":          {"tls", "mesh", "ns"},
		"service/other":     {},
		"httproute/buyer":   {"mesh"},
		"ns/shop":           {"mesh"},
		"namespace/app":     {"tls", "mesh", "slow", "gwt", "ns"},
	} {
		assert.Equal(t, want, all(object), object)
	}
	for _, c := range []struct {
		object, section string
		want            []string
	}{
		{"gateway/edge", "http", []string{"tls", "slow", "gwt"}},
		{"listenerset/more", "extra", []string{"tls", "slow", "gwt"}},
		{"httproute/toys", "main", []string{"tls", "mesh", "gwt"}},
		{"httproute/toys", "rule-2", []string{"mesh", "slow", "gwt"}},
		{"svc/toys", "web", []string{"tls", "mesh", "ns"}},
		{"svc/toys", "80", []string{"tls", "mesh", "ns"}},
		{"svc/toys", "admin", []string{"mesh", "ns"}},
		{"svc/other", "9", []string{}},
	} {
		assert.Equal(t, c.want, all(c.object, "--section", c.section), "%s %s", c.object, c.section)
	}
	assert.Equal(t, []string{"slow"}, all("httproute/toys", "--kind", "SlowPolicy"))
	assert.Equal(t, []string{"slow", "gwt"}, all("httproute/toys", "request"))
}

func TestReachCountsPaths(t *testing.T) {
	got := run(t, "", append(gep713("3"), "reach", "colorpolicy/p1", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ReachList](t, got.stdout).Items
	require.Len(t, items, 1)
	assert.Equal(t, api.ReachPaths{Holding: 1, Total: 2}, items[0].Paths)
	assert.Equal(t, []string{"colors.dark", "colors.light"}, items[0].Rules)
	assert.Equal(t, "r2", items[0].Routes[0].Name)
	assert.Empty(t, got.stderr)
}

// A policy without effect is not an error; the reason is on stderr.
func TestReachWithoutEffect(t *testing.T) {
	text := `
apiVersion: colors.example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: empty}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g1}}
---
apiVersion: colors.example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: lost}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g9}, color: red}
`
	for args, want := range map[[2]string]string{
		{"colorpolicy/p4", "color"}: "rule color of ColorPolicy default/p4 has no effect: the policy is Overridden, color lost to ColorPolicy default/p3\n",
		{"colorpolicy/p4"}:          "ColorPolicy default/p4 has no effect: the policy is Overridden, color lost to ColorPolicy default/p3\n",
		{"colorpolicy/empty"}:       "ColorPolicy default/empty has no effect: the policy is Enforced: it has no rules\n",
		{"colorpolicy/lost"}:        "ColorPolicy default/lost has no effect: the policy is TargetNotFound: Gateway default/g9 does not exist\n",
	} {
		given := append(gep713("2"), "-f", "-", "reach", args[0])
		if args[1] != "" {
			given = append(given, args[1])
		}
		got := run(t, text, given...)
		assert.Equal(t, exitOK, got.code)
		assert.Equal(t, want, got.stderr)
		assert.NotEmpty(t, got.stdout)
	}
	assert.Empty(t, affectingPolicies(t, append(gep713("2"), "svc/b2", "colors")...))
	got := run(t, "", append(gep713("2"), "reach", "--affecting", "svc/b2", "colors")...)
	assert.Equal(t, "no policy affects Service default/b2: no rule of the policies on its paths is in effect\n", got.stderr)
}

func TestReachErrors(t *testing.T) {
	assertErrors(t, gep713("2"), errorTable(t, "reach-errors"))
	assertErrors(t, []string{"reach", "-f", "testdata/shapes.yaml", "-A"}, errorTable(t, "reach-shapes-errors"))
	assertErrors(t, nil, errorTable(t, "reach-usage-errors"))
}

// The paths of most kinds end above the backends: for a Service without policies, its
// routes are listed.
func TestReachAffectingHintsAtRoutes(t *testing.T) {
	file := write(t, "app.yaml", `
kind: HTTPRoute
apiVersion: gateway.networking.k8s.io/v1
metadata: {namespace: app, name: shop}
spec: {parentRefs: [{name: edge, namespace: infra}], rules: [{backendRefs: [{name: cart, port: 80}]}]}
`)
	got := run(t, "", "reach", "--affecting", "service/cart", "-n", "app", "-f", file)
	assert.Contains(t, got.stderr, "Service app/cart")
	assert.Contains(t, got.stderr, "HTTPRoute app/shop", "one of its routes")
	goldenStderr(t, got)
	got = run(t, "", "reach", "--affecting", "httproute/shop", "-n", "app", "-f", file)
	assert.Contains(t, got.stderr, "HTTPRoute app/shop")
	goldenStderr(t, got)
}
