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
	"overrule.dev/overrule/test/tables"
)

// TestUserStories runs the user stories of the defaults-and-overrides RFC by
// their ids, on one server, each in its own namespaces.
func TestUserStories(t *testing.T) {
	c := shared(t)
	s := c.start(t)
	// Before the others, which run in parallel: it counts all paths of the
	// cluster.
	t.Run("requirements", func(t *testing.T) { c.requirements(t, s) })
	for id, look := range map[string]func(*testing.T){
		"view-effective-policy":   c.viewEffectivePolicy,
		"view-policy-rule-status": c.viewPolicyRuleStatus,
		"view-policy-rule-reach":  c.viewPolicyRuleReach,
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			look(t)
		})
	}
	for id, story := range tables.Read[map[string]userStory](t, "testdata/userstories.yaml") {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			story.play(t, c.prepare(t, id))
		})
	}
}

// userStory is a story that examples show. With Developer, a user without rights in the
// gateway's namespace creates the route's policies that are later.
type userStory struct {
	Developer bool
	Examples  []example
}

func (s userStory) play(t *testing.T, g testNamespaces) {
	writer := g.c.User
	if s.Developer {
		writer = g.developer(t)
		assert.NotZero(t, writer.Kubectl("get", "-n", g.infra, "authpolicies").Code, "the developer may see the gateway's policies")
	}
	for _, e := range s.Examples {
		e.gatewayFirst(t, g, writer)
		e.routeFirst(t, g)
	}
}

// example is an example of the RFC, as testdata/userstories.yaml says.
type example struct {
	Kind                         string // default: AuthPolicy
	Gateway, Route               string // specs without the target
	Alone, Want                  map[string]string
	GatewayWarning, RouteWarning string // empty: no warning about a lost rule
	Refused                      string
}

func (e *example) kindName() string {
	if e.Kind == "" {
		return "AuthPolicy"
	}
	return e.Kind
}

// policy returns the manifest of one of the two policies.
func (e *example) policy(name string) string {
	namespace, target, spec := "INFRA", "kind: Gateway, name: edge", e.Gateway
	if name == "route" {
		namespace, target, spec = "APP", "kind: HTTPRoute, name: toystore", e.Route
	}
	return fmt.Sprintf(`
apiVersion: kuadrant.io/v1
kind: %s
metadata: {namespace: %s, name: %s}
spec: {targetRef: {group: gateway.networking.k8s.io, %s}, %s}
`, e.kindName(), namespace, name, target, spec)
}

// gatewayFirst creates the route's policy later, as that user.
func (e *example) gatewayFirst(t *testing.T, g testNamespaces, writer *env.User) {
	t.Helper()
	defer e.deletePolicies(t, g)
	succeed(t, g.apply(e.policy("gateway")))
	if e.Alone != nil {
		assert.Equal(t, onBothPaths(e.Alone), g.effectiveRules(t, g.c.User, e.kindName()), "a route without a policy has the default")
	}
	got := writer.Apply(g.expand(e.policy("route")))
	if e.Refused != "" {
		denied(t, got, e.Refused+": ")
		return
	}
	requireLossWarning(t, got, g.expand(e.RouteWarning))
	assert.Equal(t, onBothPaths(e.Want), g.effectiveRules(t, g.c.User, e.kindName()), "the gateway's policy first")
}

// routeFirst creates the gateway's policy later.
func (e *example) routeFirst(t *testing.T, g testNamespaces) {
	t.Helper()
	defer e.deletePolicies(t, g)
	succeed(t, g.apply(e.policy("route")))
	requireLossWarning(t, g.apply(e.policy("gateway")), g.expand(e.GatewayWarning))
	assert.Equal(t, onBothPaths(e.Want), g.effectiveRules(t, g.c.User, e.kindName()), "the route's policy first")
}

// onBothPaths returns the same rules for both paths.
func onBothPaths(rules map[string]string) map[string]map[string]string {
	return map[string]map[string]string{"toys": rules, "admin": rules}
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
