package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// attachable is a world in which policies of kind Paint go to objects of other
// namespaces as the profile says; r sends requests to Services of two namespaces.
func attachable(leave string, more ...string) string {
	const (
		paints = "{group: example.com, kind: Paint, namespace: infra}, {group: example.com, kind: Paint, namespace: app}, {group: example.com, kind: Paint, namespace: sec}"
		all    = "{group: gateway.networking.k8s.io, kind: Gateway}, {group: gateway.networking.k8s.io, kind: HTTPRoute}, {group: '', kind: Service}"
		route  = "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}"
	)
	return docs(append([]string{
		worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs], namespaces: "+leave+"}\nlevels: [Gateway, RouteNamespace, Route, Backend]\n"+
			"blocks: {defaults: [defaults], overrides: [overrides]}\nstrategy: {allowed: [patch]}"),
		gatewayDoc("g", "istio", "http"), worlds.ServiceDoc("app", "shop", 80), worlds.ServiceDoc("infra", "db", 80),
		strings.Replace(routeDoc("r", "[{backendRefs: [{name: shop, port: 80}, {name: db, namespace: infra, port: 80}]}]", "g"), "name: r}", "name: r, labels: {paint: please}}", 1),
		worlds.GrantDoc("app", "in", paints, all), worlds.GrantDoc("infra", "in", paints+", "+route, all),
	}, more...)...)
}

const (
	toSelected = "targetRefs: [{kind: HTTPRoute, selector: {matchLabels: {paint: please}}, namespaces: {from: All}}]\n"
	toTenant   = "targetRefs: [{group: '', kind: Namespace, name: app}]\n"
	toShop     = "targetRefs: [{group: '', kind: Service, namespace: app, name: shop}]\n"
	toDB       = "targetRefs: [{group: '', kind: Service, namespace: infra, name: db}]\n"
	toEdge     = "targetRefs: [{kind: Gateway, namespace: infra, name: g}]\n"
)

func paintOf(namespace, spec string) string { return policyDoc("Paint", namespace, "p", spec) }

// A PolicyConstraint reads what its own namespace attaches, and what owners of
// objects that they placed below it attach to these.
func TestValuesThatPolicyConstraintsRead(t *testing.T) {
	const (
		onRoute     = "targets: [{kind: HTTPRoute, name: r}]\n"
		onGateway   = "targets: [{kind: Gateway, name: g}]\n"
		onNamespace = "targets: [{kind: Namespace}]\n"
	)
	for name, c := range map[string]struct {
		leave, namespace, targets, policy string
		reads                             bool
	}{
		"its own on its route":                                   {"referenceGrant", "app", onRoute, paintOf("app", toSelected), true},
		"its own on a gateway of another":                        {"free", "app", "", paintOf("app", toEdge), true},
		"its own on a backend of another":                        {"free", "app", "", paintOf("app", toDB), true},
		"of another, on its route that has the label":            {"referenceGrant", "app", onRoute, paintOf("infra", toSelected), false},
		"of another, on its route, without targets":              {"referenceGrant", "app", "", paintOf("infra", toSelected), false},
		"of another, on its namespace":                           {"free", "app", "", paintOf("infra", toTenant), false},
		"of another, on its namespace as target":                 {"free", "app", onNamespace, paintOf("infra", toTenant), false},
		"of another, on its Service":                             {"free", "app", onRoute, paintOf("infra", toShop), false},
		"of another, on a backend that its route sends to":       {"referenceGrant", "app", "", paintOf("infra", toDB), false},
		"of another, on a gateway above":                         {"referenceGrant", "app", "", paintOf("infra", toEdge), false},
		"of another, on its gateway":                             {"free", "infra", onGateway, paintOf("app", toEdge), false},
		"of the route's owner, below its gateway":                {"referenceGrant", "infra", onGateway, paintOf("app", toSelected), true},
		"of the route's owner, on its namespace":                 {"referenceGrant", "infra", "", paintOf("app", toTenant), true},
		"of the route's owner, on its Service":                   {"referenceGrant", "infra", "", paintOf("app", toShop), true},
		"of a third one on a route below its gateway":            {"referenceGrant", "infra", onGateway, paintOf("sec", toSelected), false},
		"of the route's owner, on its route and a gateway":       {"free", "infra", onGateway, paintOf("app", "targetRefs: [{kind: HTTPRoute, name: r}, {kind: Gateway, namespace: infra, name: g}]\n"), false},
		"of the route's owner, on a Service of the constraint's": {"free", "infra", onGateway, paintOf("app", toDB), false},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, attachable(c.leave, strings.Replace(c.policy, "\n  targetRefs", "\n  defaults: {wall: secret}\n  targetRefs", 1)))
			o := constraintIn(t, c.namespace, c.targets+"validations: [{expression: '!has(effective.wall) || effective.wall == \"x\"', message: broken}]")
			ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Create, After: o}, nil)
			require.NoError(t, err)
			want := "Warn NotRead"
			if c.reads {
				want = "Warn RequirementUnmet"
			}
			assert.Equal(t, []string{want}, codes(t, ev))
		})
	}
}

// One answer of a constraint does not stand for paths on which it reads less.
func TestConstraintOnPathsWithOpaqueValues(t *testing.T) {
	one := worlds.RouteTo("HTTPRoute", "sec", "a", "[{backendRefs: [{name: s, port: 80}]}]", worlds.ToGateway("g"))
	one = strings.Replace(one, "name: a}", "name: a, labels: {paint: please}}", 1)
	v := world(t, attachable("referenceGrant", one, worlds.GrantDoc("sec", "in", "{group: example.com, kind: Paint, namespace: app}", "{group: gateway.networking.k8s.io, kind: HTTPRoute}"),
		paintOf("app", toSelected+"wall: secret")))
	o := constraintIn(t, "infra", "validations: [{expression: 'effective.wall == \"x\"', message: broken}]")
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Create, After: o}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Warn RequirementUnmet PolicyConstraint infra/c: 2 paths, HTTPRoute app/r rule-1, Service app/shop, Gateway infra/g (broken), Service infra/db",
		"Warn NotRead PolicyConstraint infra/c: 1 path, ClusterPolicyConstraint",
	}, findings(t, ev), "the backends of app/r; sec/a")
}

// A namespace cannot close policies and Services of others to writes, whichever way
// they come to its paths. What others attach to its objects without its leave is bound.
func TestConstraintDoesNotBindForeignReferences(t *testing.T) {
	const frozen = `validations: [{expression: '!("wall" in origins)', message: frozen}]`
	selecting := func(namespace string) string {
		return paintOf(namespace, "targetRefs: [{group: '', kind: Service, selector: {matchLabels: {x: z}}}]\nwall: 1")
	}
	labelled := func(namespace, name string) string {
		return strings.Replace(worlds.ServiceDoc(namespace, name, 80), "name: "+name, "name: "+name+", labels: {x: z}", 1)
	}
	for name, c := range map[string]struct{ leave, namespace, before, write, want string }{
		"a policy on a backend of another namespace":           {"referenceGrant", "app", "", paintOf("infra", toDB+"wall: 1"), "Warn"},
		"its own policy on such a backend":                     {"referenceGrant", "app", "", paintOf("app", toDB+"wall: 1"), "Deny"},
		"a policy of its own on its backend":                   {"referenceGrant", "infra", "", paintOf("infra", toDB+"wall: 1"), "Deny"},
		"a backend of another namespace":                       {"referenceGrant", "app", selecting("infra"), labelled("infra", "db"), "Warn"},
		"its own backend":                                      {"referenceGrant", "app", selecting("app"), labelled("app", "shop"), "Deny"},
		"its own backend, below the route of another":          {"referenceGrant", "infra", selecting("infra"), labelled("infra", "db"), "Deny"},
		"a backend of the route's namespace, from above":       {"referenceGrant", "infra", selecting("app"), labelled("app", "shop"), "Deny"},
		"a policy that selects its route":                      {"referenceGrant", "app", "", paintOf("infra", toSelected+"wall: 1"), "Warn"},
		"a policy that it let select its route, and is edited": {"referenceGrant", "app", paintOf("infra", toSelected+"ceiling: 1"), paintOf("infra", toSelected+"wall: 1"), "Warn"},
		"a policy on its route that needs no leave":            {"free", "app", "", paintOf("infra", toSelected+"wall: 1"), "Deny"},
		"a policy that others attach to its gateway":           {"free", "infra", "", paintOf("app", toEdge+"wall: 1"), "Deny"},
		"a policy of a third namespace on a route below it":    {"referenceGrant", "infra", "", paintOf("sec", toSelected+"wall: 1"), "Deny"},
		"a policy of the route's owner on the route below it":  {"referenceGrant", "infra", "", paintOf("app", toSelected+"wall: 1"), "Deny"},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, attachable(c.leave))
			if c.before != "" {
				v = v.With(put(t, v, c.before))
			}
			v = v.With(snapshot.Put(constraintIn(t, c.namespace, frozen)))
			got := requirementsOf(t, evaluate(t, v, c.write))
			require.NotEmpty(t, got)
			assert.True(t, strings.HasPrefix(got[0], c.want+" RequirementUnmet PolicyConstraint "+c.namespace+"/c: "), got[0])
		})
	}
}

// Values that are opaque to a constraint are no bypass: it is evaluated with those of
// the policy that is written, if it binds that.
func TestConstraintReadsWrittenPolicy(t *testing.T) {
	const below = "rules: [{path: wall, max: 10}]"
	for name, c := range map[string]struct{ leave, namespace, write, want string }{
		"on its gateway":            {"free", "infra", paintOf("app", toEdge+"wall: 11"), "Deny RequirementUnmet wall PolicyConstraint infra/c: 11, 10, "},
		"on a route below":          {"referenceGrant", "infra", paintOf("sec", toSelected+"wall: 11"), "Deny RequirementUnmet wall PolicyConstraint infra/c: 11, 10, "},
		"and not what it let in":    {"referenceGrant", "app", paintOf("infra", toSelected+"wall: 11"), ""},
		"and not what is above":     {"free", "app", paintOf("infra", toEdge+"wall: 11"), ""},
		"and not a strange backend": {"free", "app", paintOf("infra", toDB+"wall: 11"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, attachable(c.leave)).With(snapshot.Put(constraintIn(t, c.namespace, below)))
			got := strings.Join(requirementsOf(t, evaluate(t, v, c.write)), "\n")
			assert.Equal(t, c.want, got[:min(len(got), len(c.want))], got)
			assert.Equal(t, c.want == "", got == "", got)
		})
	}
}
