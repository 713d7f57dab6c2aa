//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
)

// TestUserStories runs the user stories of the defaults-and-overrides RFC by
// their ids, on one server, each in its own namespaces.
func TestUserStories(t *testing.T) {
	c := shared(t)
	s := c.start(t)
	// Before the others, which run in parallel: it counts all paths of the
	// cluster.
	t.Run("requirements", func(t *testing.T) { c.requirements(t, s) })
	for id, play := range map[string]func(*testing.T){
		"gateway-default-policy":       c.gatewayDefaultPolicy,
		"gateway-default-policy-rule":  c.gatewayDefaultPolicyRule,
		"policy-constraints":           c.policyConstraints,
		"gateway-override-policy":      c.gatewayOverridePolicy,
		"gateway-override-policy-rule": c.gatewayOverridePolicyRule,
		"route-replace-policy":         c.routeReplacePolicy,
		"route-add-policy-rule":        c.routeAddPolicyRule,
		"route-disable-policy-rule":    c.routeDisablePolicyRule,
		"view-effective-policy":        c.viewEffectivePolicy,
		"view-policy-rule-status":      c.viewPolicyRuleStatus,
		"view-policy-rule-reach":       c.viewPolicyRuleReach,
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			play(t)
		})
	}
}

// example is an example of the RFC: two policies and their effective policies,
// whichever was created first. G and R are the values of the gateway's policy and
// of the route's.
type example struct {
	kind           string // default: AuthPolicy
	gateway, route string // specs without the target
	// want are the rules of the effective policy on each path: the value, and the
	// policy that it comes from.
	want map[string]string
	// Warnings that the writer of the later policy gets, for the gateway's policy
	// or the route's. Empty: no warning about a lost rule.
	gatewayWarning, routeWarning string
	// refused is the reason code of the denial of a route's policy that is
	// created later; then only the gateway's policy is effective.
	refused string
}

func (e *example) kindName() string {
	if e.kind == "" {
		return "AuthPolicy"
	}
	return e.kind
}

// policy returns the manifest of one of the two policies.
func (e *example) policy(name string) string {
	namespace, target, spec := "INFRA", "kind: Gateway, name: edge", e.gateway
	if name == "route" {
		namespace, target, spec = "APP", "kind: HTTPRoute, name: toystore", e.route
	}
	return fmt.Sprintf(`
apiVersion: kuadrant.io/v1
kind: %s
metadata: {namespace: %s, name: %s}
spec: {targetRef: {group: gateway.networking.k8s.io, %s}, %s}
`, e.kindName(), namespace, name, target, spec)
}

// run tests the example in both orders: with the other policy created before, and
// after.
func (e *example) run(t *testing.T, g testNamespaces) {
	t.Helper()
	e.gatewayFirst(t, g, g.c.User)
	e.routeFirst(t, g)
}

// gatewayFirst creates the route's policy later, as that user.
func (e *example) gatewayFirst(t *testing.T, g testNamespaces, writer *env.User) {
	t.Helper()
	defer e.deletePolicies(t, g)
	succeed(t, g.apply(e.policy("gateway")))
	got := writer.Apply(g.expand(e.policy("route")))
	if e.refused != "" {
		denied(t, got, e.refused+": ")
		return
	}
	requireLossWarning(t, got, e.routeWarning)
	assert.Equal(t, e.onBothPaths(), g.effectiveRules(t, g.c.User, e.kindName()), "the gateway's policy first")
}

// routeFirst creates the gateway's policy later.
func (e *example) routeFirst(t *testing.T, g testNamespaces) {
	t.Helper()
	defer e.deletePolicies(t, g)
	succeed(t, g.apply(e.policy("route")))
	requireLossWarning(t, g.apply(e.policy("gateway")), e.gatewayWarning)
	assert.Equal(t, e.onBothPaths(), g.effectiveRules(t, g.c.User, e.kindName()), "the route's policy first")
}

// onBothPaths returns the effective policies of both paths.
func (e *example) onBothPaths() map[string]map[string]string {
	return map[string]map[string]string{"toys": e.want, "admin": e.want}
}

func (e *example) deletePolicies(t *testing.T, g testNamespaces) {
	t.Helper()
	succeed(t, g.c.KubectlWith(g.expand(e.policy("gateway")+"---"+e.policy("route")), "delete", "--ignore-not-found", "-f", "-"))
}

// requireLossWarning requires that a write was allowed, and that its only warning
// about lost rules has this text.
func requireLossWarning(t *testing.T, got env.Result, part string) {
	t.Helper()
	succeed(t, got)
	var lost []string
	for line := range strings.Lines(got.Stderr) {
		if strings.Contains(line, "no effect") || strings.Contains(line, "loses its effect") || part != "" && strings.Contains(line, part) {
			lost = append(lost, line)
		}
	}
	if part == "" {
		assert.Empty(t, lost)
		return
	}
	require.NotEmpty(t, lost, got.Stderr)
	assert.Contains(t, lost[0], part)
}

// effectiveRules returns what `kubectl overrule effective` shows a user of a kind
// on the paths of the route: by route rule, each rule's value and the policy that
// it comes from.
func (g testNamespaces) effectiveRules(t *testing.T, user *env.User, kind string) map[string]map[string]string {
	t.Helper()
	out := make(map[string]map[string]string)
	for _, item := range g.effective(t, user) {
		if item.PolicyKind.Kind != kind {
			continue
		}
		held := make(map[string]string)
		for _, r := range item.Rules {
			held[r.Rule] = fmt.Sprintf("%s from %s", valueAt(t, item.Spec, r.Rule), r.From.Name)
		}
		out[item.Path[len(item.Path)-1].Section] = held
	}
	return out
}

// effective returns the output of `kubectl overrule effective` of the route for a
// user.
func (g testNamespaces) effective(t *testing.T, user *env.User) []api.EffectivePolicy {
	t.Helper()
	var list api.EffectivePolicyList
	overrule(t, user, &list, "effective", "-n", g.app, "httproute/toystore")
	return list.Items
}

// overrule runs the plugin as a user and decodes its output.
func overrule(t *testing.T, user *env.User, into any, args ...string) {
	t.Helper()
	got := user.Overrule(append(args, "-o", "json")...)
	require.Zero(t, got.Code, "kubectl overrule %v: %s%s", args, got.Stdout, got.Stderr)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), into))
}

// valueAt returns the value at an address of a spec, as JSON.
func valueAt(t *testing.T, spec any, address string) string {
	t.Helper()
	for segment := range strings.SplitSeq(address, ".") {
		object, ok := spec.(map[string]any)
		require.True(t, ok, "%s of %v", address, spec)
		spec = object[segment]
	}
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	return string(data)
}
