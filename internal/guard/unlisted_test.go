package guard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// withoutList returns the view as it is while a kind was never listed.
func withoutList(v *snapshot.View, kind string) *snapshot.View {
	var listed, unlisted []*policykind.Kind
	for _, k := range v.Kinds() {
		if k.Kind == kind {
			unlisted = append(unlisted, k)
		} else {
			listed = append(listed, k)
		}
	}
	return v.WithKinds(listed).WithUnlisted(unlisted)
}

// evaluateUnlisted returns what the error names if a change cannot be evaluated for a user,
// "" if it can.
func evaluateUnlisted(t testing.TB, r guard.Permissions, user string, v *snapshot.View, c guard.Change) string {
	t.Helper()
	c.User = userOf(user)
	_, err := (&guard.Guard{Engine: effective.NewEngine(), Permissions: r}).Evaluate(t.Context(), v, c, nil)
	if err == nil {
		return ""
	}
	var unseen *guard.UnlistedKindError
	require.ErrorAs(t, err, &unseen)
	worded(t, err.Error())
	return strings.Join(names(err.Error()), ", ")
}

// checkUnlisted requires of a way by which an override goes out of force that it is not
// open while the kind of the override was never listed either.
func checkUnlisted(t *testing.T, v *snapshot.View, c guard.Change, kind string) {
	t.Helper()
	if _, ok := c.Object().(*policykind.Policy); ok {
		return
	}
	v = withoutList(v, kind)
	c.Before = v.Get(c.Object().Ref())
	assert.NotEmpty(t, evaluateUnlisted(t, bossAndDev(), "dev", v, c))
	assert.Empty(t, evaluateUnlisted(t, bossAndDev(), "boss", v, c), "who may override all of them is not held up")
}

func TestWritesWhileKindIsUnlisted(t *testing.T) {
	const (
		paint    = "Paint.example.com, "
		mayOnG   = paint + "HTTPRoute app/r rule-1, Gateway infra/g, /readyz"
		onG      = mayOnG + ", Paint" // users are shown how to check whether they may override Paints
		anywhere = paint + "/readyz, Paint"
	)
	g, h, x := gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), "{name: x, port: 81, protocol: HTTP}"
	onBoth := routeDoc("r", two, "g", "h")
	one := docs(g, h, routeDoc("r", two, "g"), serviceDoc)
	grants := worlds.ProfileDoc("Paint", "blocks: {overrides: [overrides]}") + "  \n"
	grants = strings.Replace(grants, "targets: {", "targets: {namespaces: referenceGrant, ", 1)
	by := func(kind string) string {
		return worlds.GrantDoc("infra", "x", "{group: example.com, kind: "+kind+", namespace: app}", "{group: gateway.networking.k8s.io, kind: Gateway}")
	}
	classed := strings.Replace(worlds.ProfileDoc("Paint", "blocks: {overrides: [overrides]}"), "targets: {", "targets: {classFrom: [sec], ", 1)
	set := func(name, created, listener string) string {
		return "kind: ListenerSet\nmetadata: {namespace: infra, name: " + name + ", creationTimestamp: \"2026-01-0" + created + "T00:00:00Z\"}\nspec:\n  parentRef: {name: g}\n" +
			"  listeners: [{name: a, port: 90, allowedRoutes: {namespaces: {from: All}}, " + listener + "}]"
	}
	open := g + "  allowedListeners: {namespaces: {from: All}}"
	byS, byU, onU := set("s", "1", `protocol: HTTP, hostname: "*.example"`), set("u", "2", "protocol: HTTP, hostname: y.example"),
		strings.Replace(routeDoc("r", "[{}]", "u"), "{namespace: infra, name: u}", "{kind: ListenerSet, namespace: infra, name: u}", 1)
	h2 := strings.Replace(h, "namespace: infra", "namespace: edge", 1)
	const requires = "validations: [{expression: \"has(effective.a)\", message: needed}]"
	for name, c := range map[string]struct {
		before     string
		change     overrideCase
		constraint string
		want       string
	}{
		"a route moves to another gateway":                         {before: one, change: overrideCase{write: routeDoc("r", two, "h")}, want: onG},
		"a route leaves one of two gateways":                       {before: docs(g, h, onBoth), change: overrideCase{write: routeDoc("r", two, "h")}, want: strings.Replace(onG, "infra/g", "infra/h", 1)},
		"a route is created":                                       {before: docs(g, h), change: overrideCase{write: routeDoc("r", two, "h")}},
		"a route is deleted":                                       {before: one, change: overrideCase{delete: routeDoc("r", two, "g")}, want: onG},
		"a route has one rule more":                                {before: docs(g, routeDoc("r", "[{matches: [{path: {value: /x}}]}]", "g")), change: overrideCase{write: routeDoc("r", "[{matches: [{path: {value: /x}}]}, {matches: [{path: {value: /y}}]}]", "g")}, want: onG},
		"a rule more takes requests of another one":                {before: one, change: overrideCase{write: routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}, {matches: [{path: {value: /y}}]}]", "g")}, want: paint + "HTTPRoute app/r rule-1, Gateway infra/g, /readyz, Paint"},
		"a rule of a route has another name":                       {before: docs(g, routeDoc("r", "[{name: a}]", "g")), change: overrideCase{write: routeDoc("r", "[{name: b}]", "g")}, want: paint + "HTTPRoute app/r, Gateway infra/g, /readyz, Paint"},
		"another rule has the name of a position":                  {before: docs(g, routeDoc("r", "[{}]", "g")), change: overrideCase{write: routeDoc("r", "[{}, {name: rule-1, matches: [{path: {value: /x}}]}]", "g")}, want: onG},
		"a gateway takes another class":                            {before: one, change: overrideCase{write: gatewayDoc("g", "nginx", "http")}, want: onG},
		"a gateway has one listener more":                          {before: one, change: overrideCase{write: g + "  - " + x}, want: onG},
		"a listener without routes takes those of another":         {before: docs(open, byS, byU, onU), change: overrideCase{write: set("s", "1", "protocol: TCP")}, want: strings.Replace(onG, "Gateway infra/g", "ListenerSet infra/u", 1)},
		"a gateway has other labels":                               {before: one, change: overrideCase{write: strings.Replace(g, "name: g", "name: g, labels: {a: b}", 1)}, want: onG},
		"a route gets an owner":                                    {before: one, change: overrideCase{write: routeDoc("r", two, "g"), owner: "Thing x"}, want: onG},
		"a service of a mesh is deleted":                           {before: docs(inMesh), change: overrideCase{delete: serviceDoc}, want: paint + "HTTPRoute app/r rule-1, Service app/s, /readyz, Paint"},
		"a class is deleted":                                       {before: docs(one, istioDoc), change: overrideCase{delete: istioDoc}, want: onG},
		"a service has other ports":                                {before: docs(inMesh), change: overrideCase{write: worlds.ServiceDoc("app", "s", 81)}, want: paint + "HTTPRoute app/r rule-1, Service app/s, /readyz, Paint"},
		"a policy of another kind":                                 {before: one, change: overrideCase{write: policyDoc("Label", "app", "l", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}]\na: 1")}},
		"a route is created under a constraint":                    {before: docs(g), change: overrideCase{write: routeDoc("r", two, "g")}, constraint: requires, want: mayOnG},
		"a route is created under one that warns":                  {before: docs(g), change: overrideCase{write: routeDoc("r", two, "g")}, constraint: requires + "\nenforcement: Warn"},
		"a route stays under a constraint":                         {before: one, change: overrideCase{write: routeDoc("r", "[{matches: [{method: GET}]}, {matches: [{path: {value: /x}}]}]", "g")}, constraint: requires, want: onG},
		"a grant for such policies is deleted":                     {before: docs(grants, g, by("Paint")), change: overrideCase{delete: by("Paint")}, want: anywhere},
		"a grant for such policies is created":                     {before: docs(grants, g), change: overrideCase{write: by("Paint")}},
		"a grant for others is deleted":                            {before: docs(grants, g, by("Other")), change: overrideCase{delete: by("Other")}, want: anywhere},
		"a route is written as it was":                             {before: one, change: overrideCase{write: routeDoc("r", two, "g")}},
		"a grant is deleted that such policies need not":           {before: docs(g, by("Paint")), change: overrideCase{delete: by("Paint")}},
		"a namespace of grants is deleted":                         {before: docs(grants, "kind: Namespace\nmetadata: {name: infra}", h2, by("Other")), change: overrideCase{delete: "kind: Namespace\nmetadata: {name: infra}"}, want: anywhere},
		"a namespace is deleted that may have policies on a class": {before: docs(classed, "kind: Namespace\nmetadata: {name: sec}", one), change: overrideCase{delete: "kind: Namespace\nmetadata: {name: sec}"}, want: anywhere},
		"a namespace is deleted whose policies are its own":        {before: docs("kind: Namespace\nmetadata: {name: sec}", one), change: overrideCase{delete: "kind: Namespace\nmetadata: {name: sec}"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := withoutList(world(t, c.before), "Paint")
			if c.constraint != "" {
				v = v.With(snapshot.Put(readConstraint(t, c.constraint)))
			}
			assert.Equal(t, c.want, evaluateUnlisted(t, bossAndDev(), "dev", v, c.change.change(t, v)))
		})
	}
}

// istioDoc is the class of the gateways, inMesh a route on a Service, and Paints that may be attached to that.
var (
	istioDoc   = "kind: GatewayClass\nmetadata: {name: istio}\nspec: {controllerName: example.com/x}"
	serviceDoc = worlds.ServiceDoc("app", "s", 80)
	inMesh     = docs(worlds.ProfileDoc("Paint", "blocks: {overrides: [overrides]}\nlevels: [Service, Route, Rule]"), serviceDoc,
		worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", worlds.ToService("app", "s")))
)

func TestUnlistedDirectKind(t *testing.T) {
	v := withoutList(world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g"))), "Label")
	assert.Empty(t, evaluateUnlisted(t, bossAndDev(), "dev", v, overrideCase{write: routeDoc("r", two, "h")}.change(t, v)))
}

func TestDenialStandsWithUnlistedKind(t *testing.T) {
	const dye = "kind: PolicyProfile\nmetadata: {name: dye}\nspec: {group: example.com, kind: Dye, class: inherited, targets: {fields: [targetRefs]}, blocks: {overrides: [overrides]}}"
	v := withoutList(world(t, docs(dye, gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g"), at("g", ""))), "Dye")
	ev := evaluateAs(t, bossAndDev(), "dev", v, overrideCase{write: routeDoc("r", two, "h")}.change(t, v))
	assert.Equal(t, []string{"Deny OverrideEvaded a"}, codes(t, ev))
}

// A kind that is read in another way from now on may lose what its policies hold.
func TestReadingOfUnlistedKind(t *testing.T) {
	v := withoutList(world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"))), "Paint")
	paint := v.KindConfig().Profile("paint")
	direct := *paint
	direct.Spec = api.PolicyProfileSpec{Group: "example.com", Kind: "Paint", Class: api.Direct, Targets: paint.Spec.Targets}
	for name, c := range map[string]struct {
		after snapshot.Object
		want  bool
	}{
		"as before":  {paint, false},
		"not at all": {nil, true},
		"otherwise":  {&direct, true},
	} {
		t.Run(name, func(t *testing.T) {
			for user, want := range map[string]bool{"dev": c.want, "boss": false} {
				g := &guard.Guard{Engine: effective.NewEngine(), Permissions: bossAndDev()}
				_, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Update, Before: paint, After: c.after, User: userOf(user)}, nil)
				assert.Equal(t, want, err != nil, "%s: %v", user, err)
			}
		})
	}
}

// The definition of a kind of Gateway API takes all its objects along.
func TestDefinitionOfUnlistedKind(t *testing.T) {
	v := withoutList(world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), worlds.SetDoc("app", "s", "g", "lower"),
		toParents(two, worlds.ToSet("app", "s"), worlds.ToGateway("h")))), "Paint")
	of := func(kind, plural string) *policykind.Definition {
		d := &policykind.Definition{}
		d.Name, d.Spec.Group, d.Spec.Names.Kind, d.Spec.Names.Plural = plural+"."+api.GatewayGroup, api.GatewayGroup, kind, plural
		return d
	}
	deleted := func(d *policykind.Definition) error {
		g := &guard.Guard{Engine: effective.NewEngine(), Permissions: bossAndDev()}
		_, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: d, User: userOf("dev")}, nil)
		return err
	}
	require.ErrorContains(t, deleted(of("ListenerSet", "listenersets")), "may disable their overrides")
	require.NoError(t, deleted(of("UDPRoute", "udproutes")))
}

func TestSystemDeletionWithUnlistedKind(t *testing.T) {
	v := withoutList(world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"), istioDoc)), "Paint")
	c := overrideCase{delete: istioDoc}.change(t, v)
	c.GarbageCollected = true
	assert.Empty(t, evaluateUnlisted(t, bossAndDev(), "dev", v, c))
}

func TestPermissionErrorWithUnlistedKind(t *testing.T) {
	v := withoutList(world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g"))), "Paint")
	c := overrideCase{write: routeDoc("r", two, "h")}.change(t, v)
	_, err := (&guard.Guard{Engine: effective.NewEngine(), Permissions: &owners{err: assert.AnError}}).Evaluate(t.Context(), v, c, nil)
	require.ErrorIs(t, err, guard.ErrPermissions)
}

func TestUnlistedKindBudget(t *testing.T) {
	v := withoutList(world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g"))), "Paint")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(ctx, v, overrideCase{write: routeDoc("r", two, "h")}.change(t, v), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
}
