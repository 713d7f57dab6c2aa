package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// golden compares a text with a file of testdata; -update writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, file)
}

func ref(group, kind, namespace, name string) api.Ref {
	return api.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}
}

var (
	gwAuth        = ref("kuadrant.io", "AuthPolicy", "infra", "gw-auth")
	toystoreAuth  = ref("kuadrant.io", "AuthPolicy", "app", "toystore-auth")
	adminAuth     = ref("kuadrant.io", "AuthPolicy", "app", "toystore-admin-auth")
	toystoreLimit = ref("kuadrant.io", "RateLimitPolicy", "app", "toystore-limits")
	toystore      = ref("gateway.networking.k8s.io", "HTTPRoute", "app", "toystore")
)

// routePath returns the path to a rule of a route of Gateway infra/edge.
func routePath(namespace, route, rule string, index int) []api.PathElement {
	return []api.PathElement{
		{Kind: "GatewayClass", Name: "istio"},
		{Kind: "Gateway", Namespace: "infra", Name: "edge"},
		{Kind: "Listener", Namespace: "infra", Name: "edge", Section: "http"},
		{Kind: "HTTPRoute", Namespace: namespace, Name: route},
		{Kind: "HTTPRouteRule", Namespace: namespace, Name: route, Section: rule, Index: &index},
	}
}

// full returns a report with everything: a denial, warnings, a note, objects with and
// without a file, and changes of equal and of different paths.
func full() *Report {
	limits := func(n int) *api.RuleValue {
		return &api.RuleValue{Value: map[string]any{"rates": []any{map[string]any{"limit": n, "window": "1m"}}}, From: toystoreLimit, Block: "bare"}
	}
	browse := []api.RuleChange{{Rule: "limits.browse", Before: limits(1000), After: limits(100)}}
	return &Report{
		Command: "check", Version: "v1.4.0",
		Objects: []Object{
			{Ref: adminAuth, Operation: "CREATE", At: Location{File: "apps/toystore/21-admin-auth.yaml", Line: 2, Column: 1}},
			{Ref: toystoreLimit, Operation: "UPDATE", Allowed: true, At: Location{File: "apps/toystore/limits.yaml", Line: 1, Column: 1}},
			{Ref: toystore, Operation: "DELETE", Allowed: true},
		},
		Findings: []Finding{
			{
				Severity: Error, Code: api.ReasonUnsetOverride, Object: adminAuth, Operation: "CREATE", Rule: "rules.authentication.sso", Policy: &gwAuth,
				Message: "unset names rules.authentication.sso, which the overrides of AuthPolicy infra/gw-auth set; remove it from unset, or ask the owner of infra/gw-auth",
				At:      Location{File: "apps/toystore/21-admin-auth.yaml", Line: 14, Column: 7, EndColumn: 31},
			},
			{
				Severity: Warning, Code: api.ReasonOverridden, Object: adminAuth, Operation: "CREATE", Rule: "rules.authentication.sso", Policy: &gwAuth,
				Message: "rules.authentication.sso has no effect: AuthPolicy infra/gw-auth overrides it on Gateway infra/edge; ask the owner of infra/gw-auth",
				At:      Location{File: "/etc/manifests/gw auth.yaml", Line: 3, Column: 5, EndColumn: 9},
			},
			{
				Severity: Warning, Code: api.ReasonRequirementUnmet, Object: ref("overrule.dev", "PolicyConstraint", "infra", "authentication"), Policy: &toystoreAuth,
				PolicyKind: api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}, Path: routePath("app", "toystore", "rule-2", 1),
				Message: "no rule of rules.authentication is in effect", At: Location{File: "-", Line: 40},
			},
			{
				Severity: Note, Code: api.ReasonBlastRadius, Object: toystoreLimit, Operation: "UPDATE",
				Message: "RateLimitPolicy app/toystore-limits changes the effective RateLimitPolicy on 2 paths in 1 namespace",
				At:      Location{File: "apps/toystore/limits.yaml"},
			},
		},
		Changes: []Change{
			{
				Change: api.Change{
					Object: adminAuth, Operation: "CREATE", PolicyKind: toystoreAuth.PolicyKind(), Path: routePath("app", "toystore", "admin", 1),
					Rules: []api.RuleChange{
						{Rule: "rules.authorization.admins", After: &api.RuleValue{Value: map[string]any{"opa": map[string]any{"rego": "allow { input.auth.identity.admin }"}}, From: adminAuth, Block: "bare"}},
						{Rule: "rules.authentication.sso", Before: &api.RuleValue{Value: map[string]any{"jwt": map[string]any{"issuerUrl": "https://sso.example.com", "audiences": []any{"https://toystore.example.com", "https://admin.example.com"}}}, From: gwAuth, Block: "overrides"}},
					},
					Lost: []string{"authentication"},
				},
				Causes: []Object{
					{Ref: toystore, Operation: "DELETE"},
					{Ref: adminAuth, Operation: "CREATE", At: Location{File: "apps/toystore/21-admin-auth.yaml", Line: 2, Column: 1}},
				},
				Namespace: "app",
				Was:       routePath("app", "store", "admin", 0),
			},
			changed(toystoreLimit, routePath("app", "toystore", "toys", 0), browse),
			changed(toystoreLimit, routePath("shop", "cart", "rule-1", 0), browse),
		},
		Diagram: "flowchart LR\n  n0[\"Gateway infra/edge\"] --> n1[\"HTTPRoute app/toystore\"]\n",
	}
}

// changed returns the change of a path by the update of a policy.
func changed(policy api.Ref, path []api.PathElement, rules []api.RuleChange) Change {
	return Change{
		Change:    api.Change{Object: policy, Operation: "UPDATE", PolicyKind: policy.PolicyKind(), Path: path, Rules: rules},
		Namespace: path[len(path)-1].Namespace, Causes: []Object{{Ref: policy, Operation: "UPDATE", At: Location{File: "limits.yaml"}}},
	}
}

// violations returns the report of violations, as of a cluster.
func violations() *Report {
	r := &Report{Command: "violations", Version: "v1.4.0"}
	for _, f := range full().Findings {
		if f.Code == api.ReasonRequirementUnmet {
			f.At = Location{}
			r.Findings = append(r.Findings, f)
		}
	}
	return r
}
