package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// constraintIn reads a PolicyConstraint c on Paints; spec is YAML.
func constraintIn(t testing.TB, namespace, spec string) *constraint.Constraint {
	t.Helper()
	return namedAs(t, namespace, "c", spec)
}

func namedAs(t testing.TB, namespace, name, spec string) *constraint.Constraint {
	t.Helper()
	data, err := yaml.YAMLToJSON(fmt.Appendf(nil, "metadata: {namespace: %s, name: %s}\nspec:\n  policyKind: {group: example.com, kind: Paint}\n  %s\n",
		namespace, name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")))
	require.NoError(t, err, spec)
	o, err := snapshot.Decode(constraint.Kind, nil, data, 0)
	require.NoError(t, err)
	c := o.(*constraint.Constraint)
	require.NoError(t, c.Invalid, spec)
	return c
}

// A PolicyConstraint binds writes at or below its highest target on a path.
func TestWritesThatPolicyConstraintsBind(t *testing.T) {
	const (
		never   = `validations: [{expression: '("a" in origins) == ("a" in before)', message: frozen}]`
		onRoute = "targets: [{kind: HTTPRoute, name: r}]\n"
		onGate  = "targets: [{kind: Gateway, name: g}]\n"
		deny    = "Deny"
		warn    = "Warn"
	)
	moved := strings.Replace(routeDoc("r", "[{}]", "g"), "name: r", "name: r, labels: {x: z}", 1)
	label := `validations: [{expression: '!("x" in path.route.labels) && !("x" in path.gateway.labels)', message: frozen}]`
	cases := map[string]struct{ namespace, constraint, write, want string }{
		"the namespace's own policy":                 {"app", never, routePolicy("a: 1"), deny},
		"a gateway's policy":                         {"app", never, gatewayPolicy("defaults: {a: 1}"), warn},
		"a gateway's policy, from the gateway":       {"infra", never, gatewayPolicy("defaults: {a: 1}"), deny},
		"a route's policy, from the gateway":         {"infra", never, routePolicy("a: 1"), deny},
		"a route's policy, by the gateway as target": {"infra", onGate + never, routePolicy("a: 1"), deny},
		"a route's policy, by the route as target":   {"app", onRoute + never, routePolicy("a: 1"), deny},
		"a route":                         {"app", label, moved, deny},
		"a gateway":                       {"app", label, strings.Replace(gatewayDoc("g", "istio", "http"), "name: g", "name: g, labels: {x: z}", 1), warn},
		"the gateway, from its namespace": {"infra", label, strings.Replace(gatewayDoc("g", "istio", "http"), "name: g", "name: g, labels: {x: z}", 1), deny},
		"a namespace, from inside":        {"app", `validations: [{expression: '!("x" in path.route.namespaceLabels)', message: frozen}]`, "kind: Namespace\nmetadata: {name: app, labels: {x: z}}\n", warn},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := world(t, base("kind: Namespace\nmetadata: {name: app}\n"))
			v = v.With(snapshot.Put(constraintIn(t, c.namespace, c.constraint)))
			got := requirementsOf(t, evaluate(t, v, c.write))
			require.Len(t, got, 1, "%v", got)
			assert.True(t, strings.HasPrefix(got[0], c.want+" RequirementUnmet PolicyConstraint "+c.namespace+"/c: "), got[0])
		})
	}
}

// What a namespace may say depends on no value that is attached above it by
// another one: worlds that differ in such a value alone get the same texts.
func TestConstraintDoesNotDiscloseValues(t *testing.T) {
	// Names of rules are no secret, and a map is made of rules.
	groups := [][]string{{"1", "11", "500", "secret", "[1, 2]", "[secret]", "true", "1h", "5Gi"}, {"{b: 1}", "{b: secret}", "{b: [1]}"}}
	asks := []string{
		"effective.a > 10", "effective.a == 11", `effective.a == "secret"`, "effective.a.b == 1", "has(effective.a.b)", "has(effective.a)",
		"effective.a.size() == 2", "size(effective.a) > 1", "effective == before", "effective != before", `string(effective.a) == "11"`,
		`effective.a.startsWith("s")`, `effective.a.matches("s.*")`, "effective.a in [1, 11, 500]", "1 in effective.a", "\"b\" in effective.a",
		"effective.a.all(x, x > 0)", "effective.all(k, effective[k] == 11)", "effective.exists(k, v, v == 11)", "effective.map(k, effective[k]).size() == 1",
		"type(effective.a) == int", "effective.a > 10 || true", "effective.a > 10 && false", "effective.a > 10 ? true : false", "1 / effective.a > 0",
		"effective.a + 1 > 12", "[effective.a] == [11]", "{\"a\": effective.a} == {\"a\": 11}", "effective == {\"a\": 11}", "[effective] == [{\"a\": 11}]",
		"int(effective.a) > 10", "duration(effective.a) > duration(\"1m\")", "sets.contains([1, 11], [effective.a])", "math.greatest(effective.a, 3) == 11",
		"before.a > 10", "effective.a == before.a", "effective.filter(k, effective[k] == 11).size() == 1", "cel.bind(x, effective.a, x == 11)",
		"effective.a.b > 0 || effective.b > 0", "origins.a.block == \"overrides\"", "effective.b == 1",
		"effective.transformList(k, v, v) == [11]", "[1, 11].exists(x, x == effective.a)", "dyn(effective.a) == 11", "effective[\"a\"] == 11", "dyn(effective).a == 11",
	}
	var specs []string
	for _, ask := range asks {
		for _, e := range []string{ask, "!(" + ask + ")"} {
			specs = append(specs, fmt.Sprintf("validations: [{expression: %q, messageExpression: 'string(effective.a) + string(before.a)'}]", e))
		}
	}
	for _, rule := range []string{
		"path: a, max: 10", "path: a, min: 100", "path: a, enum: [11]", "path: a, pattern: s", "path: a.b, required: true", "path: 'a[*]', max: 1", "path: '*', max: 10",
		"path: a, required: true", "path: a.b.c, required: true", "path: '*.b', enum: [1]", "path: '*[*]', enum: [1]", "path: b, max: 10",
	} {
		specs = append(specs, "rules: [{"+rule+"}]")
	}
	blocks := []string{"overrides: {strategy: patch, a: %s}", "defaults: {strategy: patch, a: %s}"}
	worlds := make(map[string]*snapshot.View)
	for _, value := range slices.Concat(groups...) {
		for _, block := range blocks {
			above := fmt.Sprintf(block, value)
			worlds[above] = world(t, base(gatewayPolicy(above)))
		}
	}
	for _, block := range blocks {
		for _, spec := range specs {
			c := constraintIn(t, "app", "enforcement: Warn\n"+spec)
			for _, group := range groups {
				want := messagesAbout(t, c, worlds[fmt.Sprintf(block, group[0])])
				for _, value := range group[1:] {
					assert.Equal(t, want, messagesAbout(t, c, worlds[fmt.Sprintf(block, value)]), "%s: %s", spec, value)
				}
			}
		}
	}
}

// messagesAbout returns all messages that the writers of a constraint and of policies below get
// about constraints, of a world.
func messagesAbout(t *testing.T, c *constraint.Constraint, v *snapshot.View) []string {
	t.Helper()
	g := &guard.Guard{Engine: effective.NewEngine()}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Create, After: c}, nil)
	require.NoError(t, err)
	out := messages(ev)
	v = v.With(snapshot.Put(c))
	for _, write := range []string{routePolicy("strategy: patch\nb: 1"), routePolicy("strategy: patch\nb: 20")} {
		out = append(out, messages(evaluateBy(t, g, v, write))...)
	}
	violations, err := g.Violations(t.Context(), v, effective.Scope{All: true})
	require.NoError(t, err)
	for _, one := range violations {
		out = append(out, one.Message)
	}
	return out
}

// A constraint is held to what is not opaque, and says what it could not see.
func TestConstraintNeedsOpaqueValue(t *testing.T) {
	above := gatewayPolicy("defaults: {strategy: patch, l: {x: 500}}")
	v := world(t, base(above))
	c := constraintIn(t, "app", "rules: [{path: l.*, max: 10}]")
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Create, After: c}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Warn NotRead PolicyConstraint app/c: 2 paths, ClusterPolicyConstraint"}, findings(t, ev))
}

// Messages show values of the object that is written, and of no other.
func TestMessagesHideValuesOfOthers(t *testing.T) {
	v := under(t, "rules: [{path: a, max: 10}]\nvalidations: [{expression: effective.a < 10, messageExpression: 'string(effective.a)', message: too much}, {expression: 'int(effective.b) > 0'}]",
		base(gatewayPolicy("defaults: {strategy: patch, a: 500, b: secret}")))
	assert.Equal(t, []string{
		"Warn RequirementUnmet a ClusterPolicyConstraint c: 10, HTTPRoute app/r rule-1, Gateway infra/g, 1",
		"Warn RequirementUnmet ClusterPolicyConstraint c: int(effective.b) > 0, HTTPRoute app/r rule-1, Gateway infra/g, 1",
		"Warn RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1",
	}, requirementsOf(t, evaluate(t, v, routePolicy("strategy: patch\nc: 1"))))
	got := requirementsOf(t, evaluate(t, v, routePolicy("strategy: patch\na: 600\nb: own")))
	assert.Contains(t, got, "Deny RequirementUnmet a ClusterPolicyConstraint c: 600, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1")
	assert.Contains(t, strings.Join(got, "\n"), "RequirementUnmet ClusterPolicyConstraint c: 600, HTTPRoute app/r rule-1, Gateway infra/g, 1")
	shown := &guard.Guard{Engine: effective.NewEngine(), ReadsAll: true}
	assert.Contains(t, requirementsOf(t, evaluateBy(t, shown, v, routePolicy("strategy: patch\nc: 1"))), "Warn RequirementUnmet a ClusterPolicyConstraint c: 500, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1")
}
