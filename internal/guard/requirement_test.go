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

func TestTenThousandEntriesAreNoWayAroundConstraint(t *testing.T) {
	v := under(t, "validations: [{expression: 'effective.a.all(x, x < 10)', message: m}]", base())
	assert.Equal(t, []string{"Deny RequirementUnmet ClusterPolicyConstraint c: 10000, HTTPRoute app/r rule-1, Gateway infra/g, 1"},
		requirementsOf(t, evaluate(t, v, routePolicy("a: ["+strings.Repeat("1, ", 9_999)+"1]"))))
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
	assert.Equal(t, []string{"ClusterPolicyConstraint c on HTTPRoute app/r rule-1 of Gateway infra/g: a is missing: existing violation, not made worse by this write"}, shorts(evaluate(t, v, labelled)))
	empty := world(t, base())
	c := guard.Change{Operation: guard.Create, After: readConstraintOf(t, "c", "Paint", need)}
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), empty, c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"2 paths already violate ClusterPolicyConstraint c, such as HTTPRoute app/r rule-1 of Gateway infra/g (a is missing)"}, shorts(ev))
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
			Path: got[i].Path, Policy: &c, Object: routeRef("r"), Field: fmt.Sprintf("spec.rules[%d]", i), Message: want,
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
