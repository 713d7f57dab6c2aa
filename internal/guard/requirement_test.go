package guard_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// readConstraint reads a ClusterPolicyConstraint c on Paints; spec is YAML.
func readConstraint(t testing.TB, spec string) snapshot.Object {
	t.Helper()
	return readConstraintOf(t, "c", "Paint", spec)
}

func readConstraintOf(t testing.TB, name, kind, spec string) snapshot.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON(fmt.Appendf(nil, "metadata: {name: %s}\nspec:\n  policyKind: {group: example.com, kind: %s}\n  %s\n",
		name, kind, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")))
	require.NoError(t, err, spec)
	o, err := snapshot.Decode(constraint.ClusterKind, nil, data, 0)
	require.NoError(t, err)
	return o
}

// under is a world under a constraint.
func under(t testing.TB, spec, text string) *snapshot.View {
	t.Helper()
	c := readConstraint(t, spec)
	require.NoError(t, c.(*constraint.Constraint).Invalid)
	return world(t, text).With(snapshot.Put(c))
}

// requirementsOf shows the findings about constraints.
func requirementsOf(t testing.TB, ev *guard.Decision) []string {
	t.Helper()
	return findingsOf(t, ev, "RequirementUnmet")
}

const (
	atMost  = "rules: [{path: a, max: 10}]"
	need    = "rules: [{path: a, required: true}]"
	inRoute = " (ClusterPolicyConstraint c on HTTPRoute app/r rule-1 of Gateway infra/g"
)

func TestConstraintsOnWrites(t *testing.T) {
	cases := map[string]struct {
		constraint, before, write string
		want                      []string
	}{
		"a policy that breaks it":                                {atMost, base(), routePolicy("a: 11"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 11, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"a policy that does not":                                 {atMost, base(), routePolicy("a: 10"), nil},
		"a gateway's policy that breaks it below":                {atMost, base(), gatewayPolicy("defaults: {strategy: patch, a: 11}"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 11, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"two policies that break it together":                    {"validations: [{expression: 'effective.a + effective.b <= 10', message: too many}]", base(gatewayPolicy("defaults: {strategy: patch, a: 6}")), routePolicy("strategy: patch\nb: 5"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"it warns":                                               {"enforcement: Warn\n" + atMost, base(), routePolicy("a: 11"), []string{"Warn RequirementUnmet a ClusterPolicyConstraint c: 11, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"it is for the record":                                   {"enforcement: Audit\n" + atMost, base(), routePolicy("a: 11"), []string{"Audit RequirementUnmet a ClusterPolicyConstraint c: 11, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"a new route without what is required":                   {need, docs(gatewayDoc("g", "istio", "http")), routeDoc("r", "[{}]", "g"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g"}},
		"a new route that a default serves":                      {need, docs(gatewayDoc("g", "istio", "http"), gatewayPolicy("defaults: {a: 1}")), routeDoc("r", "[{}]", "g"), nil},
		"a route that moves to another gateway":                  {need, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), gatewayPolicy("defaults: {a: 1}"), routeDoc("r", "[{}]", "g")), routeDoc("r", "[{}]", "h"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/h"}},
		"a route that gets a rule more":                          {"targets: [{kind: HTTPRoute, name: r, sectionName: rule-2}]\n" + need, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")), routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "g"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-2, Gateway infra/g"}},
		"a policy of another kind changes nothing":               {need, base(), policyDoc("Label", "app", "l", "targetRefs: [{kind: HTTPRoute, name: r}]\nx: 1"), nil},
		"another gateway is not meant":                           {"targets: [{kind: Gateway, name: other}]\n" + atMost, base(), routePolicy("a: 11"), nil},
		"broken before, and still":                               {atMost, base(routePolicy("a: 20")), routePolicy("a: 20\nb: 1"), []string{"Warn RequirementUnmet a ClusterPolicyConstraint c: 20, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and less":                                {atMost, base(routePolicy("a: 20")), routePolicy("a: 15"), []string{"Warn RequirementUnmet a ClusterPolicyConstraint c: 15, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and more":                                {atMost, base(routePolicy("a: 20")), routePolicy("a: 25"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 25, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and another policy is closer":            {atMost, base(gatewayPolicy("defaults: {strategy: patch, a: 20}")), routePolicy("strategy: patch\na: 15"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 15, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and another policy is further":           {atMost, base(gatewayPolicy("defaults: {strategy: patch, a: 20}")), routePolicy("strategy: patch\na: 25"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 25, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and another policy is beside it":         {"rules: [{path: '*', max: 10}]", base(gatewayPolicy("defaults: {strategy: patch, a: 20}")), routePolicy("strategy: patch\nb: 1"), []string{"Warn RequirementUnmet * ClusterPolicyConstraint c: 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and another policy takes it away":        {"rules: [{path: '*', max: 10}]", base(gatewayPolicy("defaults: {strategy: patch, a: 20}")), routePolicy("strategy: patch\nunset: [a]\nb: 15"), []string{"Deny RequirementUnmet * ClusterPolicyConstraint c: 15, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and the same policy elsewhere":           {"rules: [{path: '*', max: 10}]", base(routePolicy("strategy: patch\na: 20")), routePolicy("strategy: patch\nb: 20"), []string{"Warn RequirementUnmet * ClusterPolicyConstraint c: 20, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and its policy goes":                     {atMost, base(gatewayPolicy("defaults: {strategy: patch, a: 15}"), routePolicy("strategy: patch\na: 20")), routePolicy("strategy: patch\nb: 1"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"false before, and another policy is false, too":         {"validations: [{expression: '!has(effective.a) || effective.a < 10', message: m}]", base(gatewayPolicy("defaults: {strategy: patch, a: 20}")), routePolicy("strategy: patch\na: 15"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"false before by another rule than one that is replaced": {"validations: [{expression: 'effective.all(k, effective[k] < 10)', message: m}]", base(gatewayPolicy("defaults: {strategy: patch, a: 20, b: 1}")), routePolicy("strategy: patch\nb: 2"), []string{"Warn RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before, and fixed":                               {atMost, base(routePolicy("a: 20")), routePolicy("a: 5"), nil},
		"broken before by another demand":                        {"rules: [{path: a, max: 10}, {path: b, max: 10}]", base(routePolicy("a: 20")), routePolicy("b: 20"), []string{"Deny RequirementUnmet b ClusterPolicyConstraint c: 20, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"below and then above":                                   {"rules: [{path: a, min: 5, max: 10}]", base(routePolicy("a: 1")), routePolicy("a: 11"), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: 11, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"broken before by a validation, and still":               {"validations: [{expression: effective.a < 10, message: m}]", base(routePolicy("a: 20")), routePolicy("a: 30"), []string{"Warn RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"for the record, and broken before":                      {"enforcement: Audit\n" + atMost, base(routePolicy("a: 20")), routePolicy("a: 15"), []string{"Audit RequirementUnmet a ClusterPolicyConstraint c: 15, 10, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"a route in violation stays editable":                    {need, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")), strings.Replace(routeDoc("r", "[{}]", "g"), "name: r", "name: r, labels: {x: z}", 1), []string{"Warn RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g"}},
		"a label that brings a path under it":                    {"targets: [{kind: HTTPRoute, selector: {matchLabels: {x: z}}}]\n" + need, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")), strings.Replace(routeDoc("r", "[{}]", "g"), "name: r", "name: r, labels: {x: z}", 1), []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g"}},
		"a label that an expression asks for":                    {"validations: [{expression: '!(\"x\" in path.route.labels) || has(effective.a)', message: m}]", docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")), strings.Replace(routeDoc("r", "[{}]", "g"), "name: r", "name: r, labels: {x: z}", 1), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g"}},
		"a namespace's label":                                    {"targets: [{kind: Namespace, selector: {matchLabels: {x: z}}}]\n" + need, base("kind: Namespace\nmetadata: {name: app}\n"), "kind: Namespace\nmetadata: {name: app, labels: {x: z}}\n", []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"a missing key is reported":                              {"validations: [{expression: effective.a.max < 10, message: m}]", base(routePolicy("a: {max: 1}")), routePolicy("a: {min: 1}"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: effective.a.max, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"a division by zero is no way around":                    {"validations: [{expression: 100 / effective.a > 1, message: m}]", base(), routePolicy("a: 0"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"10,000 entries are no way around":                       {"validations: [{expression: 'effective.a.all(x, x < 10)', message: m}]", base(), routePolicy("a: [" + strings.Repeat("1, ", 9_999) + "1]"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: 10000, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"before is null where there was no path":                 {"validations: [{expression: before == null, message: m}]", docs(gatewayDoc("g", "istio", "http")), routeDoc("r", "[{}]", "g"), nil},
		"before is empty where there was no policy":              {"validations: [{expression: 'before == {} && effective.a == 1', message: m}]", base(), routePolicy("a: 1"), nil},
		"nothing may change":                                     {"validations: [{expression: before == effective, message: m}]", base(routePolicy("a: 1")), routePolicy("a: 2"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"no more than twice as much":                             {"validations: [{expression: '!has(before.a) || effective.a <= 2 * before.a', message: m}]", base(routePolicy("a: 10")), routePolicy("a: 21"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"twice as much":                                          {"validations: [{expression: '!has(before.a) || effective.a <= 2 * before.a', message: m}]", base(routePolicy("a: 10")), routePolicy("a: 20"), nil},
		"only some origins may set an override":                  {"validations: [{expression: 'origins.all(k, o, o.block != \"overrides\" || o.namespace == \"infra\")', message: m}]", base(), routePolicy("overrides: {a: 1}"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"one of those":                                           {"validations: [{expression: 'origins.all(k, o, o.block != \"overrides\" || o.namespace == \"infra\")', message: m}]", base(), gatewayPolicy("overrides: {a: 1}"), nil},
		"an origin by its rule":                                  {"validations: [{expression: 'origins[\"a.b\"] == {\"group\": \"example.com\", \"kind\": \"Paint\", \"namespace\": \"app\", \"name\": \"own\", \"block\": \"bare\"}', message: m}]", base(), routePolicy("a: {b: 1}"), nil},
		"a missing key that was missing before":                  {"validations: [{expression: effective.b < 10, message: m}]", base(), routePolicy("a: 1"), []string{"Warn RequirementUnmet ClusterPolicyConstraint c: effective.b, HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"false, where a key was missing before":                  {"validations: [{expression: effective.b < 10, message: m}]", base(), routePolicy("b: 11"), []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"only on a gateway of some name":                         {"validations: [{expression: 'path.gateway.name != \"g\"', message: m}]", base(), routePolicy("a: 1"), []string{"Warn RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}},
		"the message may name the path": {"validations: [{expression: 'has(effective.b)', messageExpression: '\"on \" + path.rule.name'}]", docs(gatewayDoc("g", "istio", "http")), routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "g"), []string{
			"Deny RequirementUnmet ClusterPolicyConstraint c: rule-1, HTTPRoute app/r rule-1, Gateway infra/g",
			"Deny RequirementUnmet ClusterPolicyConstraint c: rule-2, HTTPRoute app/r rule-2, Gateway infra/g",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, requirementsOf(t, evaluate(t, under(t, c.constraint, c.before), c.write)))
		})
	}
}

// Who writes is known to expressions.
func TestConstraintReadsUser(t *testing.T) {
	v := under(t, "validations:\n- expression: '!has(effective.b) || \"admins\" in request.userInfo.groups'\n  messageExpression: "+
		`'request.operation + " of " + request.object.kind + " " + request.object.namespace + "/" + request.object.name + " by " + request.userInfo.username + request.userInfo.extra["x/y"][0]'`,
		base(routePolicy("a: 1")))
	c := change(v, read(t, v, routePolicy("a: 1\nb: 2")))
	user := &authenticationv1.UserInfo{Username: "eve", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"x/y": {"!"}}}
	as := func(u *authenticationv1.UserInfo) []string {
		c.User = u
		ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, c, nil)
		require.NoError(t, err)
		return requirementsOf(t, ev)
	}
	assert.Equal(t, []string{"Deny RequirementUnmet ClusterPolicyConstraint c: UPDATE, Paint app/own, eve!, HTTPRoute app/r rule-1, Gateway infra/g, 1"}, as(user))
	user.Groups = append(user.Groups, "admins")
	assert.Empty(t, as(user))
	assert.Len(t, as(nil), 1, "an unknown user has no groups")
}

func TestDeletedPolicyViolatesConstraint(t *testing.T) {
	v := under(t, need, base(gatewayPolicy("defaults: {a: 1}")))
	assert.Equal(t, []string{"Deny RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}, requirementsOf(t, deleted(t, v, paintRef("infra", "top"))))
	v = v.With(put(t, v, routePolicy("a: 1")))
	assert.Empty(t, requirementsOf(t, deleted(t, v, paintRef("infra", "top"))))
	assert.Empty(t, requirementsOf(t, deleted(t, v, routeRef("r"))), "what is gone breaks nothing")
}

// What fits on a terminal still names the constraint and says that it was so.
func TestConstraintShortMessages(t *testing.T) {
	v := under(t, need, base())
	shorts := func(ev *guard.Decision) (out []string) {
		for _, f := range slices.Concat(ev.Denials, ev.Warnings) {
			if f.Code == api.ReasonRequirementUnmet {
				out = append(out, f.Short)
			}
		}
		return out
	}
	labelled := strings.Replace(routeDoc("r", "[{}]", "g"), "name: r}", "name: r, labels: {a: b}}", 1)
	assert.Equal(t, []string{"a is missing (ClusterPolicyConstraint c): existing violation, not made worse by this write"}, shorts(evaluate(t, v, labelled)))
	empty := world(t, base())
	c := guard.Change{Operation: guard.Create, After: readConstraintOf(t, "c", "Paint", need)}
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), empty, c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"2 paths would break c: HTTPRoute app/r rule-1 of Gateway infra/g (a is missing)"}, shorts(ev))
}

func TestConstraintsOnOtherPaths(t *testing.T) {
	gatewayKind := worlds.ProfileDoc("Roof", "levels: [Gateway]\n")
	backendKind := worlds.ProfileDoc("Floor", "levels: [Gateway, Backend]\n")
	rules := "[{backendRefs: [{name: cart, port: 80}]}]"
	all := docs(gatewayKind, backendKind, gatewayDoc("g", "istio", "http"), worlds.SetDoc("sets", "s", "g", "tls"),
		worlds.RouteTo("HTTPRoute", "app", "r", rules, worlds.ToSet("sets", "s")), worlds.ServiceDoc("app", "cart", 80))
	v := world(t, all).With(snapshot.Put(readConstraintOf(t, "roof", "Roof", need)), snapshot.Put(readConstraintOf(t, "floor", "Floor", need)))
	assert.Equal(t, []string{
		"Warn RequirementUnmet a ClusterPolicyConstraint floor: HTTPRoute app/r rule-1, Service app/cart, ListenerSet sets/s",
		"Warn RequirementUnmet a ClusterPolicyConstraint roof: Gateway infra/g",
	}, requirementsOf(t, evaluate(t, v, gatewayDoc("g", "istio", "http"))))

	mesh := world(t, docs(worlds.ProfileDoc("Net", "levels: [Service, Route]\n"), worlds.ServiceDoc("app", "cart", 80),
		worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", worlds.ToService("app", "cart")))).With(snapshot.Put(readConstraintOf(t, "net", "Net", need)))
	assert.Equal(t, []string{
		"Warn RequirementUnmet a ClusterPolicyConstraint net: HTTPRoute app/r, Service app/cart",
	}, requirementsOf(t, evaluate(t, mesh, worlds.ServiceDoc("app", "cart", 80))))
}

// routes is n routes on gateway g.
func routes(n int) string {
	out := []string{gatewayDoc("g", "istio", "http")}
	for i := range n {
		out = append(out, routeDoc(fmt.Sprintf("r%03d", i), "[{}]", "g"))
	}
	return docs(out...)
}

func TestManyConstraintMessagesAreCounted(t *testing.T) {
	v := under(t, "validations: [{expression: 'effective == {}', messageExpression: path.route.name}]", routes(14))
	got := requirementsOf(t, evaluate(t, v, gatewayPolicy("defaults: {a: 1}")))
	require.Len(t, got, 11)
	assert.Equal(t, []string{
		"Deny RequirementUnmet ClusterPolicyConstraint c: r000, HTTPRoute app/r000 rule-1, Gateway infra/g",
		"Deny RequirementUnmet ClusterPolicyConstraint c: spec.validations[0], 4",
	}, []string{got[0], got[10]})
}

// A path on which nothing changes is looked at for a warning alone: that must
// not use up what the evaluation may cost.
func TestUnchangedPathsCostLittle(t *testing.T) {
	v := under(t, "validations: [{expression: 'path.route.name == \"\" && "+strings.Repeat("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, x > 0) && ", 30)+"true', messageExpression: path.route.name}]", routes(300))
	g := &guard.Guard{Engine: effective.NewEngine(), Budget: 150_000}
	labelled := strings.Replace(gatewayDoc("g", "istio", "http"), "name: g", "name: g, labels: {x: z}", 1)
	ev := evaluateBy(t, g, v, gatewayDoc("g", "istio", "http"))
	assert.Empty(t, ev.Denials)
	ev, err := g.Evaluate(t.Context(), v, change(v, read(t, v, labelled)), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Warn RequirementUnmet"}, codes(t, ev)[:1], "it is evaluated again, since the labels are others")

	dear := under(t, "validations: [{expression: '"+strings.Repeat("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, x > 0) && ", 30)+"path.route.name == \"\"'}]", routes(300))
	ev = evaluateBy(t, g, dear, gatewayDoc("g", "istio", "http"))
	assert.Empty(t, ev.Denials, "they are looked at as long as it costs little")
	require.Len(t, requirementsOf(t, ev), 1)
	assert.NotContains(t, requirementsOf(t, ev)[0], "299 more paths")
}

func TestConstraintCostLimit(t *testing.T) {
	v := under(t, "validations: [{expression: 'path.route.name == \"\" || "+strings.Repeat("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, x > 0) && ", 30)+"true'}]", routes(300))
	g := &guard.Guard{Engine: effective.NewEngine(), Budget: 10_000}
	ev := evaluateBy(t, g, v, gatewayPolicy("defaults: {a: 1}"))
	assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev)[:1])
	assert.Contains(t, ev.Denials[0].Message(), "constraints and schemas cost more than the limit of 10000 units per write; it stopped at path ")
	assert.True(t, strings.HasSuffix(ev.Denials[0].Message(), "; the last constraint evaluated was ClusterPolicyConstraint c: ask its owner to simplify it"), ev.Denials[0].Message())
}

// What depends on the effective spec alone is asked once for all paths that
// share it.
func TestConstraintIsEvaluatedOncePerStack(t *testing.T) {
	v := under(t, "validations: [{expression: 'effective == {} || "+strings.Repeat("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, x > 0) && ", 30)+"false', message: m}]", routes(300))
	g := &guard.Guard{Engine: effective.NewEngine(), Budget: 10_000}
	assert.Equal(t, []string{"Deny RequirementUnmet ClusterPolicyConstraint c: HTTPRoute app/r000 rule-1, Gateway infra/g, 299"},
		requirementsOf(t, evaluateBy(t, g, v, gatewayPolicy("defaults: {a: 1}"))))
}

func TestAuditOfConstraints(t *testing.T) {
	v := under(t, "validations: [{expression: 'has(effective.a)', message: m}, {expression: 'before == effective && request.operation == \"\" && request.userInfo.groups == []', message: no user}]",
		base())
	got, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), v, effective.Scope{All: true})
	require.NoError(t, err)
	require.Len(t, got, 2)
	c := api.Ref{Group: api.Group, Kind: "ClusterPolicyConstraint", Name: "c"}
	for i, want := range []string{"m" + inRoute + ")", "m (ClusterPolicyConstraint c on HTTPRoute app/r rule-2 of Gateway infra/g)"} {
		assert.Equal(t, api.Violation{
			Code: api.ReasonRequirementUnmet, Action: api.Deny, PolicyKind: api.PolicyKind{Group: "example.com", Kind: "Paint"},
			Path: got[i].Path, Policy: &c, Message: want,
		}, got[i])
	}
}

// A namespace goes with the constraints in it; a path that stays is evaluated by
// those that stay.
func TestNamespaceConstraints(t *testing.T) {
	v := world(t, base("kind: Namespace\nmetadata: {name: app}\n"))
	v = v.With(snapshot.Put(constraintIn(t, "app", atMost)))
	assert.Empty(t, requirementsOf(t, deleted(t, v, (&gateway.Namespace{Name: "app"}).Ref())))
}

// No limit, for what is looked at beside the write.
const unlimited = math.MaxUint64

func TestConstraintDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	v := under(t, atMost, base())
	cancel()
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: unlimited}).Evaluate(ctx, v, change(v, read(t, v, routePolicy("a: 11"))), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
}

// A gateway of another class has the same paths.
func TestConstraintsOnOtherClass(t *testing.T) {
	v := under(t, need, base())
	got := requirementsOf(t, evaluate(t, v, gatewayDoc("g", "envoy", "http")))
	assert.Equal(t, []string{"Warn RequirementUnmet a ClusterPolicyConstraint c: HTTPRoute app/r rule-1, Gateway infra/g, 1"}, got)
}
