package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/test/worlds"
)

// labelled is a route in namespace app on gateway g, with a label team.
func labelled(name, team string) string {
	return strings.Replace(routeDoc(name, "[{name: x}]", "g"), "name: "+name+"}", "name: "+name+", labels: {team: "+team+"}}", 1)
}

const routeChain = "GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/"

// Each object that a selector selects is a target in the outcome.
func TestSelectedTargets(t *testing.T) {
	base := docs(freeProbe("strategy: {allowed: [merge]}\nlevels: [Gateway, Route]"), gatewayDoc("g", "c", "http"),
		labelled("r", "red"), labelled("s", "red"), labelled("b", "blue"))
	reds := policyDoc("Probe", "app", "p", "targetRefs: [{kind: HTTPRoute, selector: {matchLabels: {team: red}}}]\na: 1")
	t.Run("by their labels", func(t *testing.T) {
		v := world(t, docs(base, reds))
		assert.Equal(t, []string{routeChain + "r | p", routeChain + "s | p"}, chains(t, v, "Probe"))
		out := outcomeOf(t, v, probeRef("app", "p"))
		assert.Equal(t, api.Enforced, out.State)
		assert.Equal(t, []api.Target{{Target: routeRef("r"), Accepted: true}, {Target: routeRef("s"), Accepted: true}}, out.Targets)
	})
	t.Run("a label that changes moves the policy", func(t *testing.T) {
		v := world(t, docs(base, reds))
		assert.Equal(t, []string{"+ " + routeChain + "b | p"}, changedChains(t, v, putChange(t, v, labelled("b", "red"))))
		assert.Equal(t, []string{"- " + routeChain + "r | p"}, changedChains(t, v, putChange(t, v, labelled("r", "blue"))))
	})
	t.Run("none: the target is not found", func(t *testing.T) {
		v := world(t, docs(base, strings.Replace(reds, "team: red", "team: green", 1)))
		assert.Empty(t, chains(t, v, "Probe"))
		out := outcomeOf(t, v, probeRef("app", "p"))
		assert.Equal(t, api.TargetNotFound, out.State)
		assert.Equal(t, "no HTTPRoute has team=green", out.Message)
		assert.Equal(t, []api.Target{{
			Target:   api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app"},
			Selector: "team=green", Reason: api.TargetNotFound,
		}}, out.Targets)
	})
	t.Run("by name and label, counted once", func(t *testing.T) {
		v := world(t, docs(base, strings.Replace(reds, "targetRefs: [", "targetRefs: [{kind: HTTPRoute, name: r}, {kind: HTTPRoute, selector: {}}, ", 1)))
		out := outcomeOf(t, v, probeRef("app", "p"))
		assert.Equal(t, api.PathCounts{Total: 3, Enforced: 3}, out.Paths)
		assert.Len(t, out.Targets, 3)
		for _, e := range walked(t, v, effective.Scope{All: true}) {
			assert.Len(t, e.Layers, 1)
		}
	})
}

// A target that is not allowed has no effect, and the outcome has the reason.
func TestRefusedTargets(t *testing.T) {
	for leave, want := range map[string]api.Target{
		"own":            {Target: gatewayRef("g"), Reason: api.TargetNotFound, Refused: "Probe can only target its own namespace"},
		"referenceGrant": {Target: gatewayRef("g"), Reason: api.TargetNotFound, Refused: "no ReferenceGrant in namespace infra allows policies of kind Probe in namespace app to target Gateway infra/g"},
		"free":           {Target: gatewayRef("g"), Accepted: true},
	} {
		profile := worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: "+leave+"}\nlevels: [Gateway]")
		v := world(t, docs(profile, gatewayDoc("g", "c", "http"), probeDoc("p", 1, onGateway+"a: 1")))
		out := outcomeOf(t, v, probeRef("app", "p"))
		assert.Equal(t, []api.Target{want}, out.Targets, leave)
		assert.Equal(t, want.Refused, out.Message)
		assert.Len(t, chains(t, v, "Probe"), min(1, out.Paths.Total), leave)
		assert.Equal(t, want.Accepted, out.State == api.Enforced, leave)
	}
}

// SEMANTICS section 5: a virtual target is a path of its own with one element.
func TestVirtualTargets(t *testing.T) {
	virtual := worlds.ClassProfileDoc("inherited", "Probe",
		"targets: {fields: [targetRefs], kinds: [{group: example.com, kind: Region, virtual: true}, {group: '*', kind: '*'}]}\nstrategy: {allowed: [merge]}\nlevels: [Gateway, Rule]")
	region := func(kind, name, spec string) string {
		return policyDoc(kind, "app", name, "targetRefs: [{group: example.com, kind: Region, name: north}]\n"+spec)
	}
	v := world(t, docs(virtual, gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g"), region("Probe", "one", "a: 1"), region("Probe", "two", "b: 2"), region("Paint", "paint", "a: 1")))
	assert.Equal(t, []string{"Region app/north | one two"}, chains(t, v, "Probe"))
	assert.Equal(t, []api.PathElement{{Kind: "Region", Namespace: "app", Name: "north"}}, explain.Item(walked(t, v, effective.Scope{All: true})[0]).Path)
	out := outcomeOf(t, v, probeRef("app", "one"))
	assert.Equal(t, api.Enforced, out.State)
	assert.Equal(t, []api.Target{{Target: api.Ref{Group: worlds.Group, Kind: "Region", Namespace: "app", Name: "north"}, Accepted: true}}, out.Targets)
	assert.Empty(t, chains(t, v, "Paint"), "to another kind it is an object of which nothing is known")
	assert.Equal(t, api.NoPath, outcomeOf(t, v, paintRef("app", "paint")).State)
	assert.Equal(t, []string{"~ Region app/north | one two -> | two"}, changedChains(t, v, storeDelete(probeRef("app", "one"))))
}

// A policy that an object attaches to itself has that object as a target in the outcome, with
// the reference; the policies of filters come before those with targets, the first one
// first. A filter reaches a rule without a name, which a sectionName does not.
func TestAttachedByReferences(t *testing.T) {
	profile := worlds.ClassProfileDoc("inherited", "Probe", `
levels: [GatewayClass, Gateway, Route, Rule, Backend]
targets: {fields: [targetRefs]}
attachment: {extensionRef: true, parametersRef: true, annotation: example.com/by}
strategy: {allowed: [merge]}
sameTarget: oldestWins`)
	const (
		class = "kind: GatewayClass\nmetadata: {name: c}\nspec: {parametersRef: {group: example.com, kind: Probe, namespace: infra, name: of-class}}"
		gw    = `
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: c
  infrastructure: {parametersRef: {group: example.com, kind: Probe, name: of-gateway}}
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]`
		route = `
kind: HTTPRoute
metadata: {namespace: app, name: r, annotations: {example.com/by: of-route}}
spec:
  parentRefs: [{namespace: infra, name: g}]
  rules:
  - backendRefs: [{name: store, port: 80}]
    filters: [{extensionRef: {group: example.com, kind: Probe, name: second}}, {extensionRef: {group: example.com, kind: Probe, name: first}}]`
		store = "kind: Service\nmetadata: {namespace: app, name: store, annotations: {example.com/by: 'none, of-service'}}\nspec: {ports: [{port: 80}]}"
	)
	var policies []string
	for _, name := range []string{"of-route", "first", "second", "of-service", "free"} {
		policies = append(policies, policyDoc("Probe", "app", name, "a: "+name))
	}
	v := world(t, docs(profile, class, gw, route, store, policyDoc("Probe", "infra", "of-class", "a: 1"), policyDoc("Probe", "infra", "of-gateway", "a: 1"),
		policyDoc("Probe", "app", "of-rule", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\na: 1"), docs(policies...)))
	assert.Equal(t, []string{
		"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/r > HTTPRouteRule app/r#rule-1 > Service app/store#80 | of-class of-gateway of-route second first of-service",
	}, chains(t, v, "Probe"))
	classRef := api.Ref{Group: api.GatewayGroup, Kind: "GatewayClass", Name: "c"}
	for name, want := range map[string]api.Target{
		"infra/of-class":   {Target: classRef, AttachedBy: "parametersRef", Accepted: true},
		"infra/of-gateway": {Target: gatewayRef("g"), AttachedBy: "parametersRef", Accepted: true},
		"app/of-route":     {Target: routeRef("r"), AttachedBy: "example.com/by", Accepted: true},
		"app/first":        {Target: routeRef("r"), Section: "rule-1", AttachedBy: "ExtensionRef", Accepted: true},
		"app/of-service":   {Target: api.Ref{Kind: "Service", Namespace: "app", Name: "store"}, AttachedBy: "example.com/by", Accepted: true},
	} {
		namespace, name, _ := strings.Cut(name, "/")
		assert.Equal(t, []api.Target{want}, outcomeOf(t, v, probeRef(namespace, name)).Targets, name)
	}
	free := outcomeOf(t, v, probeRef("app", "free"))
	assert.Equal(t, api.NoPath, free.State)
	assert.Equal(t, "no annotation example.com/by names it, and no filter of a route refers to it", free.Message)
	low := walked(t, v, effective.Scope{All: true})[0]
	assert.Equal(t, map[string]any{"a": "of-service"}, low.Spec(), "the most specific")
}

// A policy that another one names is attached to what that one is attached to: the default of
// a class takes the place of the gateway's where the rules that name it are overrides.
func TestAttachedThroughAnotherPolicy(t *testing.T) {
	profiles := docs(worlds.ClassProfileDoc("inherited", "Probe", `
levels: [GatewayClass, Gateway]
attachment: {parametersRef: true}
blocks: {bare: {field: mode, overrides: [class, ""], levels: [GatewayClass]}}
strategy: {allowed: [patch]}`), worlds.ClassProfileDoc("inherited", "Whole", `
levels: [GatewayClass, Gateway, Backend]
targets: {fields: [targetRef]}
attachment: {through: {kind: Probe, field: group.name}}
strategy: {allowed: [patch]}`))
	const objects = `kind: GatewayClass
metadata: {name: c}
spec: {parametersRef: {group: example.com, kind: Probe, namespace: sys, name: p}}
---
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: c
  infrastructure: {parametersRef: {group: example.com, kind: Probe, name: p}}
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
kind: HTTPRoute
metadata: {namespace: app, name: r}
spec: {parentRefs: [{namespace: infra, name: g}], rules: [{backendRefs: [{name: store, port: 80}]}]}
---
kind: Service
metadata: {namespace: app, name: store}
spec: {ports: [{port: 80}]}`
	for mode, want := range map[string]map[string]any{
		"":                {"a": "class", "b": "gateway", "c": "service", "d": "class"},
		"\nmode: gateway": {"a": "gateway", "b": "gateway", "c": "service", "d": "class"},
	} {
		v := world(t, docs(profiles, objects, policyDoc("Probe", "sys", "p", "group: {name: w}"+mode), policyDoc("Probe", "infra", "p", "group: {name: w}"),
			policyDoc("Whole", "sys", "w", "a: class\nc: class\nd: class"), policyDoc("Whole", "infra", "w", "a: gateway\nb: gateway\nc: gateway"),
			policyDoc("Whole", "app", "w", "targetRef: {group: '', kind: Service, name: store}\nc: service")))
		for _, e := range walked(t, v, effective.Scope{All: true}) {
			if e.Kind.Kind == "Whole" {
				assert.Equal(t, want, e.Spec(), mode)
			}
		}
		at := outcomeOf(t, v, api.Ref{Group: "example.com", Kind: "Whole", Namespace: "infra", Name: "w"}).Targets
		assert.Equal(t, []api.Target{{Target: gatewayRef("g"), AttachedBy: "group.name of Probe infra/p", Accepted: true}}, at)
		v = v.With(putChange(t, v, policyDoc("Whole", "infra", "w", "targetRef: {group: '', kind: Service, name: other}\nb: gateway")))
		at = outcomeOf(t, v, api.Ref{Group: "example.com", Kind: "Whole", Namespace: "infra", Name: "w"}).Targets
		assert.Equal(t, "Whole with a target cannot be attached by group.name of Probe infra/p", at[1].Refused)
	}
}

// Rules that have no effect where policies are merged: an override of the class is gone once
// the gateway has a policy, and one without any other rule has no effect. Paths go through
// the listed kinds of routes, whatever the targets are.
func TestIgnoredWhereMerged(t *testing.T) {
	profile := worlds.ClassProfileDoc("inherited", "Probe", `
levels: [GatewayClass, Gateway]
routes: [TLSRoute]
targets: {fields: [targetRefs], namespaces: free, classFrom: ["*"]}
blocks: {bare: {field: mode, overrides: [""], levels: [GatewayClass]}}
ignoreOn: [{rules: [m], where: Merged}]
strategy: {allowed: [patch]}`)
	on := func(name, spec string) string { return policyDoc("Probe", "infra", name, spec) }
	objects := docs(profile, "kind: GatewayClass\nmetadata: {name: c}", gatewayDoc("g", "c", "http"), on("high", "targetRefs: [{kind: GatewayClass, name: c}]\nm: 1\na: 1"))
	alone := walked(t, world(t, objects), effective.Scope{All: true})[0]
	assert.Equal(t, map[string]any{"a": int64(1), "m": int64(1)}, alone.Spec())
	v := world(t, docs(objects, on("low", "targetRefs: [{kind: Gateway, name: g}]\nm: 2")))
	e := walked(t, v, effective.Scope{All: true})[0]
	assert.Equal(t, map[string]any{"a": int64(1)}, e.Spec())
	overrides := alone.AppendOverrides(nil)
	assert.Equal(t, []bool{true, false}, []bool{e.Keeps(overrides[0]), e.Keeps(overrides[1])})
	low := outcomeOf(t, v, probeRef("infra", "low"))
	assert.Equal(t, api.NoPath, low.State)
	assert.Equal(t, "no field that Probe infra/low sets has an effect there", low.Message)
}

// Bare rules that are overrides at some levels only: those of the class and not those of the
// gateway, whatever their field says.
func TestBareOverridesOfALevel(t *testing.T) {
	profile := worlds.ClassProfileDoc("inherited", "Probe", `
levels: [GatewayClass, Gateway]
targets: {fields: [targetRefs], namespaces: free, classFrom: ["*"]}
blocks: {bare: {field: mode, overrides: [class, ""], levels: [GatewayClass]}}
strategy: {allowed: [merge]}`)
	on := func(name, spec string) string { return policyDoc("Probe", "infra", name, spec) }
	for mode, want := range map[string]map[string]any{
		"":                {"a": int64(1), "b": int64(2)},
		"\nmode: class":   {"a": int64(1), "b": int64(2)},
		"\nmode: gateway": {"a": int64(2), "b": int64(2)},
	} {
		v := world(t, docs(profile, "kind: GatewayClass\nmetadata: {name: c}", gatewayDoc("g", "c", "http"), on("high", "targetRefs: [{kind: GatewayClass, name: c}]\na: 1"+mode),
			on("low", "targetRefs: [{kind: Gateway, name: g}]\na: 2\nb: 2\nmode: class")))
		e := walked(t, v, effective.Scope{All: true})[0]
		assert.Equal(t, want, e.Spec(), mode)
		for _, o := range e.AppendOverrides(nil) {
			assert.Equal(t, "high", o.Policy.Name, "the gateway's are no overrides")
		}
		assert.Equal(t, mode != "\nmode: gateway", len(e.AppendOverrides(nil)) > 0)
	}
}
