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

// TestUserStories plays the user stories of the defaults-and-overrides RFC by their
// ids, on one server, each on a ground of its own.
func TestUserStories(t *testing.T) {
	c := shared(t)
	s := c.start(t)
	// Before the others, which run at once: it counts all paths of the cluster.
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

// example is one of the RFC's: two policies and what they come to, whichever of
// them was declared first. G and R in them are who wrote a value.
type example struct {
	kind           string // empty: AuthPolicy
	gateway, route string // specs, without the target
	// want are the rules of the effective policy on each path, as value and
	// the policy that it is from.
	want map[string]string
	// told is what the writer of the later policy reads: the gateway's policy
	// or the route's. Nothing: no word about a lost rule.
	toldGateway, toldRoute string
	// refused is the code of the denial of a route's policy that comes later;
	// the gateway's policy alone is in force then.
	refused string
}

func (e *example) kindName() string {
	if e.kind == "" {
		return "AuthPolicy"
	}
	return e.kind
}

// policy is the manifest of one of the two.
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

// run plays the example in both orders: with the other policy declared in the
// past, and in the future.
func (e *example) run(t *testing.T, g testNamespaces) {
	t.Helper()
	e.gatewayFirst(t, g, g.c.User)
	e.routeFirst(t, g)
}

// gatewayFirst has the route's policy written later, by that user.
func (e *example) gatewayFirst(t *testing.T, g testNamespaces, writer *env.User) {
	t.Helper()
	defer e.deletePolicies(t, g)
	succeed(t, g.apply(e.policy("gateway")))
	got := writer.Apply(g.expand(e.policy("route")))
	if e.refused != "" {
		denied(t, got, e.refused+": ")
		return
	}
	requireLossWarning(t, got, e.toldRoute)
	assert.Equal(t, e.onBothPaths(), g.effectiveRules(t, g.c.User, e.kindName()), "the gateway's policy first")
}

// routeFirst has the gateway's policy written later.
func (e *example) routeFirst(t *testing.T, g testNamespaces) {
	t.Helper()
	defer e.deletePolicies(t, g)
	succeed(t, g.apply(e.policy("route")))
	requireLossWarning(t, g.apply(e.policy("gateway")), e.toldGateway)
	assert.Equal(t, e.onBothPaths(), g.effectiveRules(t, g.c.User, e.kindName()), "the route's policy first")
}

// onBothPaths are the effective policies of both paths.
func (e *example) onBothPaths() map[string]map[string]string {
	return map[string]map[string]string{"toys": e.want, "admin": e.want}
}

func (e *example) deletePolicies(t *testing.T, g testNamespaces) {
	t.Helper()
	succeed(t, g.c.KubectlWith(g.expand(e.policy("gateway")+"---"+e.policy("route")), "delete", "--ignore-not-found", "-f", "-"))
}

// requireLossWarning requires that a write went through and, of what is lost, said just that.
func requireLossWarning(t *testing.T, got env.Result, part string) {
	t.Helper()
	succeed(t, got)
	var lost []string
	for line := range strings.Lines(got.Stderr) {
		if strings.Contains(line, "no effect") || strings.Contains(line, "loses its effect") {
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

// held is what `kubectl overrule effective` shows a user of a kind on the paths of
// the route: by route rule, each rule's value and the policy that it is from.
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

// effective is what `kubectl overrule effective` answers a user of the route.
func (g testNamespaces) effective(t *testing.T, user *env.User) []api.EffectivePolicy {
	t.Helper()
	var list api.EffectivePolicyList
	overrule(t, user, &list, "effective", "-n", g.app, "httproute/toystore")
	return list.Items
}

// overrule runs the plugin as a user and reads its answer.
func overrule(t *testing.T, user *env.User, into any, args ...string) {
	t.Helper()
	got := user.Overrule(append(args, "-o", "json")...)
	require.Zero(t, got.Code, "kubectl overrule %v: %s%s", args, got.Stdout, got.Stderr)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), into))
}

// valueAt is the value at an address of a spec, as JSON.
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
