//go:build e2e

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// metric returns a gauge or counter of a server, summed over all labels except
// the given ones.
func metric(t *testing.T, s *server.Server, name string, labels ...string) float64 {
	t.Helper()
	sum, ok := s.Metric(t.Context(), name, labels...)
	require.True(t, ok, "the server has no metrics")
	return sum
}

// Two policies violate the constraint together.
const (
	notBoth = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: not-both}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  targets: [{group: "", kind: Namespace, name: INFRA}]
  validations:
  - expression: "!(has(effective.limits) && has(effective.limits.gate) && has(effective.limits.route))"
    message: both limits are set
`
	gateLimit = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: INFRA, name: gate}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  defaults: {strategy: merge, limits: {gate: {rates: [{limit: 5, window: 1s}]}}}
`
	routeLimit = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: APP, name: route}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {route: {rates: [{limit: 5, window: 1s}]}}
`
)

func TestAuditReportsAllowedViolations(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "audit")
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.InstallCRDs(filepath.Join(root, "deploy", "crds")))
	succeed(t, g.apply(notBoth))
	t.Cleanup(func() {
		c.removeWebhooks(t) // its server has stopped
		succeed(t, c.Kubectl("delete", "clusterpolicyconstraint/not-both"))
	})
	s := c.start(t, "--enforcement=warn")
	// reports waits until the audit reports violations, or none, and "kubectl overrule
	// violations" as many.
	reports := func(some bool) {
		t.Helper()
		reported := 0.0
		env.Soon(t, func() bool {
			reported = metric(t, s, "overrule_violations", `reason="RequirementUnmet"`)
			return some == (reported > 0)
		}, "the audit does not report allowed violations")
		got := c.Overrule("violations", "clusterpolicyconstraint/not-both", "-A", "-o", "json")
		var list struct{ Items []json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list), got.Stdout+got.Stderr)
		assert.Equal(t, some, got.Code == 1, got.Stderr)
		assert.Len(t, list.Items, int(reported))
	}
	env.Soon(t, func() bool { return metric(t, s, "overrule_audit_runs_total", `scope="all"`, `result="done"`) > 0 }, "there was no audit")
	reports(false)
	succeed(t, g.apply(gateLimit))
	succeed(t, g.apply(routeLimit))
	reports(true)
	env.Soon(t, func() bool {
		got := g.kubectl("describe", "httproute/toystore")
		return got.Code == 0 && strings.Contains(got.Stdout, "RequirementUnmet") && strings.Contains(got.Stdout, "both limits are set")
	}, "no Event reports it")
	assert.Contains(t, s.Log(), `"msg":"violation","reason":"RequirementUnmet"`)

	succeed(t, g.kubectl("delete", "ratelimitpolicy/route"))
	reports(false)
	assert.Contains(t, s.Log(), `"msg":"violation resolved","reason":"RequirementUnmet"`)
}

// The namespace has a route that may be without limits for a while, and one that was created
// before the constraint.
const (
	limited = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyConstraint
metadata: {namespace: APP, name: limited}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  gracePeriod: 6s
  validations: [{expression: has(effective.limits), message: a limit is required}]
`
	late = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: late}
spec:
  parentRefs: [{namespace: INFRA, name: edge}]
  hostnames: [late.example.com]
  rules: [{matches: [{path: {value: /PATH}}]}]
`
)

func TestGracePeriodEndsOnTheAPIServer(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "grace")
	s := c.start(t)
	c.awaitCalled(t)
	succeed(t, g.apply(limited))
	env.Soon(t, func() bool { return metric(t, s, "overrule_violations", `reason="RequirementUnmet"`) > 0 }, "the audit does not report the older route")

	write := func(path string) env.Result { return g.apply(strings.ReplaceAll(late, "PATH", path)) }
	got := write("a")
	succeed(t, got)
	assert.Contains(t, got.Stderr, "a limit is required")
	assert.Contains(t, got.Stderr, "the constraint's grace period")
	succeed(t, g.kubectl("label", "httproute/toystore", "team=a")) // it is not what has to comply
	created, err := time.Parse(time.RFC3339, g.get(t, "httproute/late", ".metadata.creationTimestamp"))
	require.NoError(t, err)
	env.Soon(t, func() bool {
		return strings.Contains(g.kubectl("describe", "httproute/late").Stdout, "a limit is required")
	}, "the audit does not report the route")
	assert.GreaterOrEqual(t, time.Since(created), 6*time.Second, "the period has ended then")
	denied(t, write("b"), "a limit is required")
	succeed(t, g.apply(strings.NewReplacer("name: route", "name: late", "toystore", "late").Replace(routeLimit)))
	succeed(t, write("b"))
}
