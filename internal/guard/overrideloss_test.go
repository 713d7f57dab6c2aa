package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// dye is a kind whose policies may be on everything from the class to the
// backends; veil one that needs a ReferenceGrant for other namespaces.
var (
	dye = worlds.ClassProfileDoc("inherited", "Dye", `targets: {fields: [targetRefs], namespaces: free, classFrom: ["*"]}
levels: [GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, RouteNamespace, Route, Rule, Backend]
shortPaths: true
strategy: {allowed: [merge]}
blocks: {overrides: [overrides]}`)
	veil = worlds.ClassProfileDoc("inherited", "Veil", "targets: {fields: [targetRefs], namespaces: referenceGrant}\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
)

func dyed(namespace, name, targets string) string {
	return policyDoc("Dye", namespace, name, "targetRefs: ["+targets+"]\noverrides: {a: 1}")
}

// listening is a gateway doc with another rule of whose routes a listener takes.
func listening(doc, listener, from string) string {
	head, rest, _ := strings.Cut(doc, "{name: "+listener+",")
	return head + "{name: " + listener + "," + strings.Replace(rest, "from: All}", from+"}", 1)
}

// What is above the routes is written.
func TestGatewayChanges(t *testing.T) {
	g, both, h := gatewayDoc("g", "istio", "http"), gatewayDoc("g", "istio", "http", "alt"), gatewayDoc("h", "istio", "http")
	r := routeDoc("r", two, "g")
	onH := evaded("Paint infra/top", "Listener infra/h#http")
	onAlt := evaded("Paint infra/top", "Listener infra/g#alt")
	classes := docs(dye, "kind: GatewayClass\nmetadata: {name: istio}", "kind: GatewayClass\nmetadata: {name: envoy}")
	ofClass := dyed("infra", "top", "{kind: GatewayClass, name: istio}")
	red := "targetRefs: [{kind: Gateway, selector: {matchLabels: {team: red}}}]\n" + hard
	labelled := strings.Replace(g, "name: g}", "name: g, labels: {team: red}}", 1)
	set, ofSet := worlds.SetDoc("app", "s", "g", "lower"), policyDoc("Paint", "app", "top", "targetRefs: [{kind: ListenerSet, name: s}]\n"+hard)
	onBoth := toParents(two, worlds.ToSet("app", "s"), worlds.ToGateway("g"))
	runOverrideCases(t, map[string]overrideCase{
		"a listener is renamed":                              {before: docs(g, r, at("g", "http")), write: gatewayDoc("g", "istio", "http2"), want: evaded("Paint infra/top", "Listener infra/g#http2")},
		"a listener is renamed, the gateway has the policy":  {before: docs(g, r, at("g", "")), write: gatewayDoc("g", "istio", "http2")},
		"a listener is renamed, the route is elsewhere, too": {before: docs(g, h, routeDoc("r", two, "g", "h"), at("g", "")), write: gatewayDoc("g", "istio", "http2")},
		"it is renamed and has but one hostname, likewise": {
			before: docs(g, h, routeDoc("r", two, "g", "h"), at("g", "")),
			write:  strings.Replace(gatewayDoc("g", "istio", "http2"), "name: http2,", "name: http2, hostname: decoy.example,", 1), want: onH,
		},
		"a listener goes, the route is on another, too":      {before: docs(both, r, at("g", "http")), write: listening(both, "http", "from: None"), want: onAlt},
		"a listener goes, and the route with it":             {before: docs(both, toParents(two, section("g", "http")), at("g", "http")), write: gatewayDoc("g", "istio", "other", "alt")},
		"it takes routes of its own namespace alone":         {before: docs(both, r, at("g", "http")), write: listening(both, "http", "from: Same"), want: onAlt},
		"it takes routes of all namespaces on one more":      {before: docs(listening(both, "alt", "from: Same"), r, at("g", "http")), write: both},
		"its class changes":                                  {before: docs(classes, g, r, ofClass), write: gatewayDoc("g", "envoy", "http"), of: "Dye infra/top", want: evaded("Dye infra/top")},
		"its class changes, the policy is on the gateway":    {before: docs(classes, g, r, dyed("infra", "top", "{kind: Gateway, name: g}")), write: gatewayDoc("g", "envoy", "http")},
		"the class is deleted":                               {before: docs(classes, g, r, ofClass), delete: "kind: GatewayClass\nmetadata: {name: istio}", of: "Dye infra/top", want: evaded("Dye infra/top", "GatewayClass istio")},
		"its label changes":                                  {before: docs(labelled, r, policyDoc("Paint", "infra", "top", red)), write: g, want: evaded("Paint infra/top")},
		"it is deleted":                                      {before: docs(g, r, at("g", "")), delete: g},
		"it is deleted, the route is on another":             {before: docs(g, h, routeDoc("r", two, "g", "h"), at("g", "")), delete: g, want: evaded("Paint infra/top", "Gateway infra/g")},
		"it shuts its listener, the route is on another one": {before: docs(g, h, routeDoc("r", two, "g", "h"), at("g", "")), write: listening(g, "http", "from: Same"), want: onH},
		"it admits no listener sets, the route is on the gateway, too": {
			before: docs(g, set, onBoth, ofSet), write: strings.Replace(g, "allowedListeners: {namespaces: {from: All}}", "allowedListeners: {namespaces: {from: None}}", 1),
			of: "Paint app/top", want: evaded("Paint app/top", "Listener infra/g#http"),
		},
		"it admits no listener sets": {
			before: docs(g, set, toParents(two, worlds.ToSet("app", "s")), ofSet), write: strings.Replace(g, "allowedListeners: {namespaces: {from: All}}", "allowedListeners: {namespaces: {from: None}}", 1),
		},
		"a listener set goes to another gateway": {
			before: docs(g, h, set, toParents(two, worlds.ToSet("app", "s")), at("g", "")), write: worlds.SetDoc("app", "s", "h", "lower"),
			want: evaded("Paint infra/top", "Listener app/s#lower"),
		},
		"a listener set is deleted, the route is on the gateway, too": {
			before: docs(g, set, onBoth, ofSet), delete: set, of: "Paint app/top", want: evaded("Paint app/top", "ListenerSet app/s"),
		},
	})
}

// What a path hangs on without going through it is written.
func TestDependenciesOfOverrides(t *testing.T) {
	g, both, r := gatewayDoc("g", "istio", "http"), gatewayDoc("g", "istio", "http", "alt"), routeDoc("r", two, "g")
	app := func(labels string) string { return "kind: Namespace\nmetadata: {name: app, labels: {" + labels + "}}" }
	ofTeam := dyed("infra", "top", "{kind: HTTPRoute, selector: {}, namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}")
	veils := "{group: example.com, kind: Veil, namespace: app}"
	grant := worlds.GrantDoc("infra", "t", veils, gateways)
	veiled := policyDoc("Veil", "app", "top", "targetRefs: [{kind: Gateway, namespace: infra, name: g}]\noverrides: {a: 1}")
	tint := worlds.ProfileDoc("Tint", "strategy: {allowed: [merge], annotation: {name: example.com/how, values: {deep: {strategy: merge, overrides: true}}}}")
	deep := strings.Replace(r, "name: r}", "name: r, annotations: {example.com/how: deep}}", 1)
	tinted := policyDoc("Tint", "infra", "top", toGateway+"a: 1")
	service := worlds.ServiceDoc("app", "b", 80, 81)
	toB := routeDoc("r", "[{backendRefs: [{name: b, port: 80}]}]", "g")
	onPort := dyed("app", "top", `{group: "", kind: Service, name: b, sectionName: p80}`)
	elsewhere := docs(dye, g, toParents("[{backendRefs: [{name: b, namespace: shop, port: 80}]}]", worlds.ToGateway("g")), worlds.ServiceDoc("shop", "b", 80),
		dyed("shop", "top", `{group: "", kind: Service, name: b}`))
	toShop := worlds.GrantDoc("shop", "t", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", `{group: "", kind: Service}`)
	runOverrideCases(t, map[string]overrideCase{
		"a namespace's label, by which a listener took its routes": {
			before: docs(listening(both, "http", "from: Selector, selector: {matchLabels: {team: red}}"), app("team: red"), r, at("g", "http")), write: app("team: blue"),
			want: evaded("Paint infra/top", "Listener infra/g#alt"),
		},
		"a namespace's label, by which a policy chose its routes": {
			before: docs(dye, g, app("team: red"), r, ofTeam), write: app("team: blue"), of: "Dye infra/top", want: evaded("Dye infra/top"),
		},
		"a namespace's other label": {before: docs(dye, g, app("team: red"), r, ofTeam), write: app("team: red, x: z")},
		"a ReferenceGrant is deleted": {
			before: docs(veil, g, r, grant, veiled), delete: grant, of: "Veil app/top", want: evaded("Veil app/top", "ReferenceGrant infra/t"),
		},
		"a ReferenceGrant is narrowed": {
			before: docs(veil, g, r, grant, veiled), write: worlds.GrantDoc("infra", "t", veils, "{group: gateway.networking.k8s.io, kind: Gateway, name: h}"),
			of: "Veil app/top", want: evaded("Veil app/top"),
		},
		"one of two ReferenceGrants is deleted": {before: docs(veil, g, r, grant, worlds.GrantDoc("infra", "u", veils, gateways), veiled), delete: grant},
		"one of two ReferenceGrants is deleted, and the other is about to be": {
			before: docs(veil, g, r, grant, strings.Replace(worlds.GrantDoc("infra", "u", veils, gateways), "name: u}", "name: u, deletionTimestamp: '2026-01-01T00:00:00Z'}", 1), veiled), delete: grant,
			of: "Veil app/top", want: evaded("Veil app/top", "ReferenceGrant infra/t"),
		},
		"a ReferenceGrant that lets traffic through is deleted": {
			before: docs(elsewhere, toShop), delete: toShop,
		},
		"the annotation that makes bare rules overrides": {
			before: docs(tint, g, deep, tinted), write: r, of: "Tint infra/top", want: evaded("Tint infra/top"),
		},
		"a bare rule that is read as an override is edited": {
			before: docs(tint, g, deep, tinted), write: policyDoc("Tint", "infra", "top", toGateway+"a: 2"),
			of: "Tint infra/top", want: []string{strings.Replace(removed, "Paint", "Tint", 1)},
		},
		"a bare rule that is read as an override moves to another gateway": {
			before: docs(tint, g, gatewayDoc("h", "istio", "http"), deep, tinted), write: strings.Replace(tinted, "name: g}", "name: h}", 1),
			of: "Tint infra/top", want: evaded("Tint infra/top"),
		},
		"a Service loses the port that is a target": {
			before: docs(dye, g, service, toB, onPort), write: worlds.ServiceDoc("app", "b", 81), of: "Dye app/top",
			want: evadedOn("Dye app/top", "Service app/b#80"),
		},
		"a Service that is a target is deleted": {
			before: docs(dye, g, service, toB, onPort), delete: service, of: "Dye app/top", want: evadedOn("Dye app/top", "Service app/b#80", "Service app/b"),
		},
		"a route goes to another port of the Service": {
			before: docs(dye, g, service, toB, onPort), write: routeDoc("r", "[{backendRefs: [{name: b, port: 81}]}]", "g"), of: "Dye app/top",
			want: evadedOn("Dye app/top", "Service app/b#80", "Service app/b#81"),
		},
	})
}

// Paths with more backends than one.
func TestDroppedBackends(t *testing.T) {
	g, h := gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http")
	b1, b2 := "{name: b1, port: 80}", "{name: b2, port: 80}"
	services := docs(dye, worlds.ServiceDoc("app", "b1", 80), worlds.ServiceDoc("app", "b2", 80))
	r := func(backends string, gateways ...string) string {
		return routeDoc("r", "[{backendRefs: ["+backends+"]}]", gateways...)
	}
	onG, onB1 := dyed("infra", "top", "{kind: Gateway, name: g}"), dyed("app", "top", `{group: "", kind: Service, name: b1}`)
	runOverrideCases(t, map[string]overrideCase{
		"one of two, under the gateway":              {before: docs(services, g, r(b1+", "+b2, "g"), onG), write: r(b2, "g")},
		"one of two, on two gateways":                {before: docs(services, g, h, r(b1+", "+b2, "g", "h"), onG), write: r(b2, "g", "h")},
		"one for another one, on two gateways":       {before: docs(services, g, h, r(b1, "g", "h"), onG), write: r(b2, "g", "h")},
		"one of two, with the gateway":               {before: docs(services, g, h, r(b1+", "+b2, "g", "h"), onG), write: r(b2, "h"), of: "Dye infra/top", want: []string{strings.Replace(topLost, "Paint", "Dye", 1)}},
		"moved to another gateway with its policy":   {before: docs(services, g, h, r(b1, "g"), onB1), write: r(b1, "h")},
		"moved to another gateway without a backend": {before: docs(services, g, h, r(b1, "g"), onB1), write: r("", "h")},
	})
}

// Where paths end above the routes.
func TestOverridesOfListenersAndGateways(t *testing.T) {
	coat := worlds.ProfileDoc("Coat", "levels: [Gateway, Listener]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	seal := worlds.ClassProfileDoc("inherited", "Seal", "targets: {fields: [targetRefs], classFrom: ['*']}\nlevels: [GatewayClass, Gateway]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	coated := func(section string) string {
		return policyDoc("Coat", "infra", "top", "targetRefs: [{kind: Gateway, name: g"+section+"}]\noverrides: {a: 1}")
	}
	withListener := func(hostname string) string {
		return gatewayDoc("g", "istio", "http") + "  - {name: shop, protocol: HTTP, port: 80, hostname: " + hostname + "}\n"
	}
	setOnPort80 := func(hostname string) string {
		return strings.NewReplacer("port: 8080", "port: 80, hostname: "+hostname).Replace(worlds.SetDoc("app", "s", "g", "shop"))
	}
	sealed := policyDoc("Seal", "infra", "top", "targetRefs: [{kind: GatewayClass, name: istio}]\noverrides: {a: 1}")
	g := gatewayDoc("g", "istio", "http")
	slips := func(policy string, on ...string) []string {
		return []string{"OverrideEvaded a " + policy + ": " + strings.Join(on, ", ")}
	}
	runOverrideCases(t, map[string]overrideCase{
		"a listener is renamed": {
			before: docs(coat, g, coated(", sectionName: http")), write: gatewayDoc("g", "istio", "http2"), of: "Coat infra/top",
			want: slips("Coat infra/top", "Listener infra/g#http", "Listener infra/g#http2"),
		},
		"a listener goes":  {before: docs(coat, gatewayDoc("g", "istio", "alt", "http"), coated(", sectionName: http")), write: gatewayDoc("g", "istio", "alt")},
		"a listener comes": {before: docs(coat, g, coated(", sectionName: http")), write: gatewayDoc("g", "istio", "http", "alt")},
		"a listener of a set goes, and the gateway has one of that name": {
			before: docs(coat, g, worlds.SetDoc("app", "s", "g", "http"), policyDoc("Coat", "app", "top", "targetRefs: [{kind: ListenerSet, name: s, sectionName: http}]\noverrides: {a: 1}")),
			delete: worlds.SetDoc("app", "s", "g", "http"),
		},
		"listeners change their ports": {
			before: docs(coat, gatewayDoc("g", "istio", "alt", "http"), coated(", sectionName: http")), write: gatewayDoc("g", "istio", "http", "alt"),
			of: "Coat infra/top", want: slips("Coat infra/top", "Listener infra/g#http", "Listener infra/g#alt"),
		},
		"listeners change their ports under a policy of both": {
			before: docs(coat, gatewayDoc("g", "istio", "alt", "http"), coated("")), write: gatewayDoc("g", "istio", "http", "alt"),
		},
		"a new listener takes one of its hostnames": {
			before: docs(coat, gatewayDoc("g", "istio", "http"), coated(", sectionName: http")), write: withListener("shop.example.com"),
			of: "Coat infra/top", want: slips("Coat infra/top", "Listener infra/g#http", "Listener infra/g#shop"),
		},
		"a new listener takes one of its hostnames under a policy of both": {
			before: docs(coat, gatewayDoc("g", "istio", "http"), coated("")), write: withListener("shop.example.com"),
		},
		"a new listener set takes one of its hostnames": {
			before: docs(coat, gatewayDoc("g", "istio", "http"), coated(", sectionName: http")), write: setOnPort80("shop.example.com"),
			of: "Coat infra/top", want: slips("Coat infra/top", "Listener infra/g#http", "Listener app/s#shop"),
		},
		"a listener goes, and one for all hostnames takes its connections": {
			before: docs(coat, withListener("shop.example.com"), coated(", sectionName: shop")), write: gatewayDoc("g", "istio", "http"),
			of: "Coat infra/top", want: slips("Coat infra/top", "Listener infra/g#shop", "Listener infra/g#http"),
		},
		"a listener is renamed under a policy of the gateway": {before: docs(coat, g, coated("")), write: gatewayDoc("g", "istio", "new")},
		"a listener is renamed, and its policy stays behind": {
			before: docs(coat, gatewayDoc("g", "istio", "http"), coated(", sectionName: http")), write: gatewayDoc("g", "istio", "new"),
			of: "Coat infra/top", want: slips("Coat infra/top", "Listener infra/g#http", "Listener infra/g#new"),
		},
		"the gateway is deleted": {before: docs(coat, g, coated("")), delete: g},
		"the policy goes from it to a section": {
			before: docs(coat, g, coated("")), write: coated(", sectionName: http"), of: "Coat infra/top",
			want: slips("Coat infra/top", "Listener infra/g#http"),
		},
		"the policy goes from a section to it": {before: docs(coat, g, coated(", sectionName: http")), write: coated("")},
		"the policy goes": {
			before: docs(coat, g, coated("")), delete: coated(""), of: "Coat infra/top",
			want: []string{"OverrideRemoved a Coat infra/top: Listener infra/g#http"},
		},
		"the class changes": {
			before: docs(seal, "kind: GatewayClass\nmetadata: {name: istio}", g, sealed), write: gatewayDoc("g", "envoy", "http"), of: "Seal infra/top",
			want: slips("Seal infra/top", "Gateway infra/g"),
		},
	})
}

// Where paths start at a Service, or are a virtual target.
func TestOverridesOfServicesAndVirtualTargets(t *testing.T) {
	mesh := worlds.ProfileDoc("Mist", "levels: [ServiceNamespace, Service]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	virtual := worlds.ClassProfileDoc("inherited", "Fog", "targets: {fields: [targetRefs], kinds: [{group: example.com, kind: Bucket, virtual: true}]}\nlevels: [Backend]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	service := worlds.ServiceDoc("app", "b", 80, 81)
	mist := func(more string) string {
		return policyDoc("Mist", "app", "top", `targetRefs: [{group: "", kind: Service, name: b`+more+"}]\noverrides: {a: 1}")
	}
	fog := policyDoc("Fog", "app", "top", "targetRefs: [{group: example.com, kind: Bucket, name: b}]\noverrides: {a: 1}")
	holds := func(policy, on string) []string {
		return []string{"OverrideRemoved a " + policy + ": " + on}
	}
	runOverrideCases(t, map[string]overrideCase{
		"of a Service":                            {before: docs(mesh, service, mist("")), delete: mist(""), of: "Mist app/top", want: holds("Mist app/top", "Service app/b")},
		"of a Service, edited":                    {before: docs(mesh, service, mist("")), write: strings.Replace(mist(""), "a: 1", "a: 2", 1), of: "Mist app/top", want: holds("Mist app/top", "Service app/b")},
		"of a port of a Service":                  {before: docs(mesh, service, mist(", port: 81")), delete: mist(""), of: "Mist app/top", want: holds("Mist app/top", "Service app/b#81")},
		"of a Service that is deleted":            {before: docs(mesh, service, mist("")), delete: service},
		"of a virtual target":                     {before: docs(virtual, fog), delete: fog, of: "Fog app/top", want: holds("Fog app/top", "Bucket app/b")},
		"of a virtual target, and edited":         {before: docs(virtual, fog), write: strings.Replace(fog, "a: 1", "a: 2", 1), of: "Fog app/top", want: holds("Fog app/top", "Bucket app/b")},
		"of a virtual target that is another now": {before: docs(virtual, fog), write: strings.Replace(fog, "name: b}", "name: c}", 1), of: "Fog app/top", want: []string{"OverrideEvaded a Fog app/top: Bucket app/b"}},
	})
}

// In kinds that do not merge, an older policy pushes another off its target.
func TestOlderPolicyTakesTarget(t *testing.T) {
	lone := worlds.ProfileDoc("Lone", "sameTarget: none\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	aged := func(name, year, gw string) string {
		doc := policyDoc("Lone", "infra", name, "targetRefs: [{kind: Gateway, name: "+gw+"}]\noverrides: {a: 1}")
		return strings.Replace(doc, "name: "+name+"}", "name: "+name+", creationTimestamp: '"+year+"-01-01T00:00:00Z'}", 1)
	}
	overrideCase{
		before: base(lone, aged("top", "2025", "g"), strings.Replace(aged("older", "2020", "none"), "a: 1", "a: 2", 1)),
		write:  strings.Replace(aged("older", "2020", "g"), "a: 1", "a: 2", 1), of: "Lone infra/top", want: evaded("Lone infra/top"),
	}.run(t)
}

// An object that gets an owner will be deleted with it.
func TestNewOwners(t *testing.T) {
	const owner = "ConfigMap infra/x"
	grant := worlds.GrantDoc("infra", "t", "{group: example.com, kind: Veil, namespace: app}", gateways)
	veiled := policyDoc("Veil", "app", "top", "targetRefs: [{kind: Gateway, namespace: infra, name: g}]\noverrides: {a: 1}")
	runOverrideCases(t, map[string]overrideCase{
		"of the policy":                {before: base(gatewayPolicy(hard)), write: gatewayPolicy(hard), owner: owner, want: evaded("Paint infra/top", "ConfigMap infra/x")},
		"of the ReferenceGrant":        {before: base(veil, grant, veiled), write: grant, owner: owner, of: "Veil app/top", want: evaded("Veil app/top", "ReferenceGrant infra/t", "ConfigMap infra/x")},
		"of the gateway":               {before: base(gatewayPolicy(hard)), write: gatewayDoc("g", "istio", "http"), owner: owner},
		"of the route":                 {before: base(gatewayPolicy(hard)), write: routeDoc("r", two, "g"), owner: owner},
		"of a policy without override": {before: base(gatewayPolicy("defaults: {a: 1}")), write: gatewayPolicy("defaults: {a: 1}"), owner: owner},
		"of a policy that is created":  {before: base(), write: gatewayPolicy(hard), owner: owner},
		"of the policy, whose rule goes in the same write": {
			before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: patch, b: 1}"), owner: owner,
			want: append([]string{removed}, evaded("Paint infra/top", "ConfigMap infra/x")...),
		},
	})
}

// A Namespace takes everything in it along, and its DELETE is where the user is
// known.
func TestDeletedNamespaces(t *testing.T) {
	ns := func(name string) string { return "kind: Namespace\nmetadata: {name: " + name + "}" }
	g, h := gatewayDoc("g", "istio", "http"), strings.Replace(gatewayDoc("h", "istio", "http"), "namespace: infra", "namespace: edge", 1)
	toBoth := toParents(two, worlds.ToGateway("g"), "{namespace: edge, name: h}")
	farPolicy := dyed("sec", "top", "{kind: Gateway, namespace: infra, name: g}")
	runOverrideCases(t, map[string]overrideCase{
		"of a policy on what is elsewhere": {
			before: docs(dye, ns("sec"), g, routeDoc("r", two, "g"), farPolicy), delete: ns("sec"), of: "Dye sec/top", want: evaded("Dye sec/top", "Namespace sec"),
		},
		"of the gateway and its policy, the route is on another": {
			before: docs(ns("infra"), g, h, toBoth, at("g", "")), delete: ns("infra"), want: evaded("Paint infra/top", "Namespace infra"),
		},
		"of the gateway and its policy, the route is on no other": {before: docs(ns("infra"), g, routeDoc("r", two, "g"), at("g", "")), delete: ns("infra")},
		"of the route":     {before: docs(ns("app"), g, routeDoc("r", two, "g"), at("g", "")), delete: ns("app")},
		"that has nothing": {before: docs(ns("none"), g, routeDoc("r", two, "g"), at("g", "")), delete: ns("none")},
		"of a ReferenceGrant's giver, with the gateway": {
			before: docs(veil, ns("infra"), g, routeDoc("r", two, "g"), worlds.GrantDoc("infra", "t", "{group: example.com, kind: Veil, namespace: app}", gateways),
				policyDoc("Veil", "app", "top", "targetRefs: [{kind: Gateway, namespace: infra, name: g}]\noverrides: {a: 1}")), delete: ns("infra"),
		},
	})
}

// rereading is what rereads the policies where a profile or a definition is
// written.
type rereading struct {
	known
	after *snapshot.View
}

func (r rereading) ViewAfterKindChange(_ context.Context, v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
	if r.after == nil {
		return v, r.err
	}
	return r.after, r.err
}

// What says how policies are read is evaluated by what it does to them.
func TestProfilesAndDefinitionsRemoveOverrides(t *testing.T) {
	objects := docs(gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"), policyDoc("Dye", "infra", "top", toGateway+"overrides: {a: 1}"),
		policyDoc("Paint", "infra", "other", toGateway+"overrides: {strategy: patch, b: 1}"))
	before := world(t, docs(dye, objects))
	without := before.WithKinds(before.Kinds()[1:]) // Dye is the first of them
	reads := func(profile string) *snapshot.View {
		w := world(t, docs(profile, objects))
		v := before.WithKinds(w.Kinds())
		for _, k := range w.Kinds() {
			for p := range w.Policies(k.Ref()) {
				v = v.With(snapshot.Put(p))
			}
		}
		return v
	}
	definition := &policykind.Definition{}
	definition.Name = "dyes.example.com"
	blind := worlds.ProfileDoc("Dye", "strategy: {allowed: [merge]}")
	paths := worlds.ProfileDoc("Dye", "strategy: {allowed: [merge]}\nlevels: [Gateway, Route]\nblocks: {overrides: [overrides]}")
	tests := map[string]struct {
		change guard.Change
		after  *snapshot.View
		want   []string
	}{
		"a definition is deleted": {
			guard.Change{Operation: guard.Delete, Before: definition}, without,
			evaded("Dye infra/top", "CustomResourceDefinition dyes.example.com"),
		},
		"a definition loses its label": {guard.Change{Operation: guard.Update, Before: definition, After: definition}, without, evaded("Dye infra/top")},
		"a definition is edited":       {guard.Change{Operation: guard.Update, Before: definition, After: definition}, nil, nil},
		"a profile reads no overrides": {guard.Change{Operation: guard.Create, After: profile("dye", nil)}, reads(blind), evaded("Dye infra/top")},
		"a profile reads the same":     {guard.Change{Operation: guard.Update, Before: profile("dye", nil), After: profile("dye", nil)}, reads(dye), nil},
		"a profile is deleted":         {guard.Change{Operation: guard.Delete, Before: profile("dye", nil)}, without, evaded("Dye infra/top", "PolicyProfile dye")},
		"a profile has other paths": {guard.Change{Operation: guard.Create, After: profile("dye", nil)}, reads(paths), []string{
			"OverrideRemoved a Dye infra/top: 2 paths, shortPaths",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			findingsFor := func(user string) []string {
				g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: test.after}, Permissions: bossAndDev()}
				test.change.User = userOf(user)
				ev, err := g.Evaluate(t.Context(), before, test.change, nil)
				require.NoError(t, err)
				return findingsOf(t, ev, "Override")
			}
			var denials, warnings []string
			for _, what := range test.want {
				denials, warnings = append(denials, "Deny "+what), append(warnings, "Warn "+what)
			}
			assert.Equal(t, denials, findingsFor("dev"))
			assert.Equal(t, warnings, findingsFor("boss"))
		})
	}
}

func TestRereadError(t *testing.T) {
	down := errors.New("no answer")
	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{known: known{err: down}}}
	definition := &policykind.Definition{}
	definition.Name = "dyes.example.com"
	_, err := g.Evaluate(t.Context(), world(t, base()), guard.Change{Operation: guard.Delete, Before: definition}, nil)
	require.ErrorIs(t, err, down)
	require.EqualError(t, err, "reread policies for CustomResourceDefinition dyes.example.com: no answer")
}

// Evaluating losses counts against the budget as all else does.
func TestOverrideLossBudget(t *testing.T) {
	costly := policyDoc("Paint", "infra", "of-h", "targetRefs: [{kind: Gateway, name: h}]\noverrides: {strategy: patch, b: 1, when: '[1, 2, 3].all(x, x > 0)'}")
	v := world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g", "h"), at("g", ""), costly))
	g, h := v.Gateway("infra", "g"), v.Gateway("infra", "h")
	for name, c := range map[string]guard.Change{
		"where the traffic goes":        {Operation: guard.Delete, Before: g},
		"what goes with a new owner":    {Operation: guard.Update, Before: g, After: g, Owner: "ConfigMap infra/x"},
		"the paths of the object after": {Operation: guard.Create, After: h},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Evaluate(t.Context(), v, c, nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
		})
	}
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: h}, nil)
	require.NoError(t, err)
	assert.NotContains(t, codes(t, ev), "Deny TooMuch", "what the paths before cost is not for the writer to pay")
}
