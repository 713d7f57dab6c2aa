package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/tables"
)

func against(names ...string) []string {
	out := []string{"--against", "../../../examples/crds"}
	for _, name := range names {
		out = append(out, "--against", demo+name+".yaml")
	}
	return out
}

func check(t *testing.T, text string, args ...string) []api.Verdict {
	t.Helper()
	got := run(t, text, append([]string{"check", "-o", "json", "-f", "-"}, args...)...)
	require.NotEqual(t, exitError, got.code, got.stderr)
	return decode[api.VerdictList](t, got.stdout).Items
}

// Definitions and namespaces of a change are evaluated, and apply to the objects
// after them.
func TestObjectsAreEvaluatedInOrder(t *testing.T) {
	all := check(t, `
apiVersion: v1
kind: Namespace
metadata: {name: app, labels: {team: toys}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: flat.example.com, labels: {gateway.networking.k8s.io/policy: direct}}
spec: {group: example.com, scope: Namespaced, names: {kind: Flat, plural: flats}}
---
apiVersion: example.com/v1
kind: Flat
metadata: {namespace: app, name: flat}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}, size: 1}
---
apiVersion: v1
kind: Service
metadata: {namespace: app, name: toystore}
`, "--against", "testdata/selector.yaml")
	assert.Equal(t, []string{
		"CREATE Namespace app", "CREATE CustomResourceDefinition flat.example.com", "CREATE Flat flat", "CREATE Service toystore",
	}, verdicts(all))
	assert.Equal(t, api.Ref{Group: "example.com", Kind: "Flat", Namespace: "app", Name: "flat"}, all[2].Object)
	assert.Equal(t, api.Changes{Paths: 1, Namespaces: 1}, all[2].Changes)
}

// A route that a later object of a revision attaches has no warning that no request reaches it.
func TestRouteIsAttachedLater(t *testing.T) {
	const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: toys}}}}}]}
`
	const route = `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: toystore}
spec: {parentRefs: [{namespace: infra, name: edge}]}
`
	warnings := func(to string) []api.Reason {
		got := run(t, "", "check", "-o", "json", "--from", write(t, "from.yaml", gateway), "--to", write(t, "to.yaml", gateway+to))
		require.Equal(t, exitOK, got.code, got.stderr)
		var out []api.Reason
		for _, v := range decode[api.VerdictList](t, got.stdout).Items {
			out = append(out, v.Warnings...)
		}
		return out
	}
	alone := warnings(route)
	require.Len(t, alone, 1)
	assert.Equal(t, api.ReasonUnreached, alone[0].Code)
	assert.Empty(t, warnings(route+"---\n{apiVersion: v1, kind: Namespace, metadata: {name: app, labels: {team: toys}}}"))
}

// Objects that are renamed together have no warnings of the state in between: a route with the
// policy on it, and a listener with the parentRef to it. What is forgotten is reported.
func TestObjectsAreRenamedTogether(t *testing.T) {
	const world = `
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: app, name: edge}, spec: {gatewayClassName: eg, listeners: [{name: LISTENER, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: app, name: ROUTE}, spec: {parentRefs: [{name: edge, sectionName: PARENT}], hostnames: [shop.example.com], rules: [{name: cart}]}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {namespace: app, name: ip}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: TARGET}], cors: {allowOrigins: ['https://a.com']}}}
`
	revision := func(listener, parent, route, target string) string {
		return write(t, "all.yaml", strings.NewReplacer("LISTENER", listener, "PARENT", parent, "ROUTE", route, "TARGET", target).Replace(world))
	}
	from := revision("http", "http", "shop", "shop")
	for name, test := range map[string]struct {
		to   string
		want []string
	}{
		"a route and its policy":          {revision("http", "http", "storefront", "storefront"), nil},
		"a listener and its route":        {revision("web", "web", "shop", "shop"), nil},
		"a listener and not its route":    {revision("web", "http", "shop", "shop"), []string{"Gateway Unreached"}},
		"a route below a wrong listener":  {revision("http", "web", "storefront", "storefront"), []string{"HTTPRoute TargetNotFound", "SecurityPolicy NoPath"}},
		"a route, a listener, the policy": {revision("web", "web", "storefront", "storefront"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", "check", "-o", "json", "--from", from, "--to", test.to)
			require.Equal(t, exitOK, got.code, got.stderr)
			var warnings []string
			for _, v := range decode[api.VerdictList](t, got.stdout).Items {
				assert.Zero(t, v.Changes.Unreached, v.Object)
				for _, w := range v.Warnings {
					if w.Code != api.ReasonBlastRadius && w.Code != api.ReasonSchemaInvalid {
						warnings = append(warnings, v.Object.Kind+" "+string(w.Code))
					}
				}
			}
			assert.Equal(t, test.want, warnings)
		})
	}
	got := run(t, "", "check", "-o", "markdown", "--from", from, "--to", revision("http", "http", "storefront", "storefront"))
	assert.NotContains(t, got.stdout, "no request reaches")
}

func TestDeletedDefinitionRemovesPolicies(t *testing.T) {
	definition := "../../../examples/crds/kuadrant.io_authpolicies.yaml"
	got := run(t, "", append(against("cluster", "route-auth"), "check", "--delete", "-o", "json", "-v",
		"-f", definition, "-f", demo+"route-auth.yaml")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.VerdictList](t, got.stdout).Items
	assert.Equal(t, []string{"DELETE CustomResourceDefinition authpolicies.kuadrant.io"}, verdicts(items), "its policies are deleted with it")
	assert.Equal(t, api.Changes{Paths: 2, Namespaces: 1}, items[0].Changes)
}

// A create gets the time of the request, whatever the manifest has, and an update
// keeps the stored one. Here it decides which of two overrides takes precedence.
func TestCreationTimeOfChanges(t *testing.T) {
	policy := func(name, created, value string) string {
		return `
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: ` + name + created + `}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {a: ` + value + `}}}
`
	}
	stored := policy("older", `, creationTimestamp: "2025-01-01T00:00:00Z"`, "1") + policy("newer", `, creationTimestamp: "2025-06-01T00:00:00Z"`, "2")
	file := append(against("cluster"), "--against", write(t, "stored.yaml", stored))
	created := check(t, policy("ancient", `, creationTimestamp: "2001-01-01T00:00:00Z"`, "3"), file...)
	assert.Zero(t, created[0].Changes.Paths, "a create is the newest")
	updated := check(t, policy("older", "", "3"), file...)
	assert.Equal(t, 2, updated[0].Changes.Paths, "the older one stays the older")
	assert.Equal(t, "UPDATE", updated[0].Operation)
	updated = check(t, policy("newer", "", "3"), file...)
	assert.Zero(t, updated[0].Changes.Paths, "the newer one stays the newer")
	updated = check(t, policy("newer", `, creationTimestamp: "2001-01-01T00:00:00Z"`, "3"), file...)
	assert.Zero(t, updated[0].Changes.Paths, "whatever its manifest says")
}

func TestDiffOfDeniedChange(t *testing.T) {
	args := append(against("cluster", "gateway-policies", "route-limits"), "diff", "-o", "json", "-f", demo+"route-limits-too-high.yaml")
	got := run(t, "", args...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ChangeList](t, got.stdout).Items
	require.Len(t, items, 2)
	assert.Equal(t, "UPDATE", items[0].Operation)
	require.Len(t, items[0].Rules, 1)
	assert.Equal(t, "limits.login", items[0].Rules[0].Rule)
	assert.Equal(t, "RateLimitPolicy app/toystore-limits", items[0].Rules[0].Before.From.String())
	assert.Equal(t, "RateLimitPolicy infra/gw-limits", items[0].Rules[0].After.From.String())
	assert.Equal(t, "overrides", items[0].Rules[0].After.Block)
	assert.Equal(t, []string{"toys", "admin"}, []string{items[0].Path[4].Section, items[1].Path[4].Section})
}

func TestDiffOfAddedAndRemovedRules(t *testing.T) {
	for _, c := range []struct {
		remove  string
		against []string
		appears bool
	}{
		{"--delete=false", against("cluster"), true},
		{"--delete=true", against("cluster", "route-auth"), false},
	} {
		got := run(t, "", append(c.against, "diff", "-o", "json", "-f", demo+"route-auth.yaml", c.remove)...)
		require.Equal(t, exitOK, got.code, got.stderr)
		items := decode[api.ChangeList](t, got.stdout).Items
		require.Len(t, items, 2)
		require.Len(t, items[0].Rules, 2)
		assert.Equal(t, c.appears, items[0].Rules[0].Before == nil)
		assert.Equal(t, c.appears, items[0].Rules[0].After != nil)
	}
}

func TestInvalidChanges(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Text string
		Args []string
		Code int
		Want string
	}](t, "testdata/tables/invalid-changes.yaml") {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"check", "diff"} {
				args := append(against("cluster"), command, "-f", "-")
				got := run(t, c.Text, append(args, c.Args...)...)
				assert.Equal(t, c.Code, got.code, got.stdout)
				assert.Contains(t, got.stderr, c.Want)
				goldenStderr(t, got)
				assert.Empty(t, got.stdout)
			}
		})
	}
	got := run(t, "", "check", "-f", demo+"cluster.yaml", "--against", t.TempDir())
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "no manifests found")
}

// The difference of a change whose evaluation exceeds the budget would be
// incomplete, so diff returns an error.
func TestDiffExceedsBudget(t *testing.T) {
	policies, list := expensivePolicies()
	stored := filepath.Join(t.TempDir(), "stored.yaml") // from before there was a limit to how many there may be
	require.NoError(t, os.WriteFile(stored, []byte(policies), 0o600))
	world := append(against("cluster"), "--against", stored)
	got := run(t, list, append(world, "diff", "-f", "-")...)
	assert.Equal(t, exitError, got.code, got.stdout)
	assert.Contains(t, got.stderr, "error: RateLimitPolicy app/limits: ")
	verdicts := check(t, strings.Replace(list, "[1, ", "[2, ", 1), world...) // other values: they were not evaluated yet
	last := verdicts[len(verdicts)-1]
	assert.False(t, last.Allowed)
	assert.Equal(t, api.ReasonTooMuch, last.Reasons[0].Code)

	got = run(t, policies+list, append(against("cluster"), "diff", "-f", "-")...)
	assert.NotEqual(t, exitError, got.code, "the number of conditions in one place is not a matter of cost: %s", got.stderr)
}

// expensivePolicies returns two hundred gateway policies whose conditions use the
// whole cost budget, and a policy with the list that they iterate over.
func expensivePolicies() (policies, list string) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: infra, name: p%d}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides:
    strategy: merge
    when: spec.limits.l.all(a, spec.limits.l.all(b, spec.limits.l.all(c, a + b + c >= 0)))
    limits: {x%d: 1}
---
`, i, i)
	}
	return b.String(), fmt.Sprintf(`
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: app, name: limits}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {l: [%s1]}
`, strings.Repeat("1, ", 100))
}
