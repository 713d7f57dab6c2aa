package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// guided returns a profile of a kind of a mesh whose Services have waypoints.
func guided(kind, rest string) string {
	return worlds.ClassProfileDoc("inherited", kind, "levels: [Mesh, GatewayClass, GatewayNamespace, Gateway, ServiceNamespace, Service]\n"+
		"targets: {fields: [targetRef], implicit: {meshNamespace: root}}\nstrategy: {allowed: [merge]}\nsameTarget: collect\n"+
		"waypoints: {label: use, namespaceLabel: use-in, none: none, protocol: TUNNEL, classes: [way], purpose: {label: for, values: [service]}"+rest+"}")
}

const (
	waypointAll  = "kind: Gateway\nmetadata: {namespace: infra, name: w}\nspec: {gatewayClassName: any, listeners: [{name: t, port: 1, protocol: TUNNEL, allowedRoutes: {namespaces: {from: All}}}]}"
	waypointSame = "kind: Gateway\nmetadata: {namespace: infra, name: w}\nspec: {gatewayClassName: way, listeners: [{name: t, port: 1, protocol: HTTP}]}"
)

func serviceIn(namespace, labels string) string {
	return "kind: Service\nmetadata: {namespace: " + namespace + ", name: s, labels: {" + labels + "}}\nspec: {ports: [{port: 80}]}"
}

// The path of a Service goes through its waypoint, with the policies on that. What has no
// effect there is listed behind a bar.
func TestPathsThroughWaypoints(t *testing.T) {
	const used = "use: w, use-in: infra"
	for name, c := range map[string]struct {
		waypoint, service, namespace string
		own, all                     string // of a kind that reads targeted policies only at waypoints, and of one that reads all
	}{
		"its own label":                  {waypointAll, serviceIn("app", used), "", "any infra w app s: way svc | mesh app", "any infra w app s: mesh way app svc"},
		"no label":                       {waypointAll, serviceIn("app", ""), "", "app s: mesh app | svc", "app s: mesh app | svc"},
		"its namespace's label":          {waypointAll, serviceIn("app", ""), used, "any infra w app s: way svc | mesh app", "any infra w app s: mesh way app svc"},
		"its own goes before that":       {waypointAll, serviceIn("app", "use: none"), used, "app s: mesh app | svc", "app s: mesh app | svc"},
		"of its own namespace":           {waypointAll, serviceIn("app", "use: w"), "", "app s: mesh app | svc", "app s: mesh app | svc"},
		"not admitted":                   {waypointSame, serviceIn("app", used), "", "app s: mesh app | svc", "app s: mesh app | svc"},
		"for workloads":                  {strings.Replace(waypointAll, "name: w}", "name: w, labels: {for: workload}}", 1), serviceIn("app", used), "", "app s: mesh app | svc", "app s: mesh app | svc"},
		"for services":                   {strings.Replace(waypointAll, "name: w}", "name: w, labels: {for: service}}", 1), serviceIn("app", used), "", "any infra w app s: way svc | mesh app", "any infra w app s: mesh way app svc"},
		"a class for workloads":          {waypointAll + "\n---\nkind: GatewayClass\nmetadata: {name: any, labels: {for: workload}}", serviceIn("app", used), "", "app s: mesh app | svc", "app s: mesh app | svc"},
		"in one namespace, which is one": {waypointSame, serviceIn("infra", "use: w"), "", "way infra w s: way | mesh", "way infra w s: mesh way"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []string{guided("Targeted", ", targetedOnly: true"), guided("Any", ""), c.waypoint, c.service, "kind: Namespace\nmetadata: {name: app, labels: {" + c.namespace + "}}"}
			for _, kind := range []string{"Targeted", "Any"} {
				objects = append(objects, policyDoc(kind, "root", "mesh", "a: 1"), policyDoc(kind, "app", "app", "a: 1"),
					policyDoc(kind, "infra", "way", "targetRef: {kind: Gateway, name: w}\na: 1"), policyDoc(kind, "app", "svc", "targetRef: {kind: Service, name: s}\na: 1"))
			}
			got := map[string]string{}
			for _, e := range walked(t, world(t, docs(objects...)), effective.Scope{All: true}) {
				if e.Path.Service != nil {
					got[e.Kind.Kind] = throughService(e)
				}
			}
			assert.Equal(t, map[string]string{"Targeted": c.own, "Any": c.all}, got)
		})
	}
}

// throughService formats a path and its policies.
func throughService(e *effective.Effective) string {
	var out []string
	for _, element := range explain.Item(e).Path {
		out = append(out, element.Name)
	}
	text := strings.Join(out, " ") + ":"
	for i := range e.Outcomes {
		text += " " + e.Outcomes[i].Policy.Name
	}
	if len(e.Ignored) > 0 {
		text += " |"
	}
	for _, p := range e.Ignored {
		text += " " + p.Name
	}
	return text
}

// What decides the waypoint of a Service affects the paths that a change of it does.
func TestFootprintsOfWaypoints(t *testing.T) {
	onService := policyDoc("Targeted", "app", "svc", "targetRef: {kind: Service, name: s}\na: 1")
	v := world(t, docs(guided("Targeted", ""), waypointAll, serviceIn("app", "use: w, use-in: infra"), gatewayDoc("other", "class", "http")))
	footprint := func(doc string) *effective.Footprint {
		o := read(t, v, doc)
		return effective.FootprintOf([]snapshot.Object{o}, v, v.With(snapshot.Put(o)))
	}
	for doc, want := range map[string]bool{
		waypointSame: true, "kind: GatewayClass\nmetadata: {name: any}": true, "kind: Namespace\nmetadata: {name: app}": true,
		gatewayDoc("other", "class", "http"): false,
	} {
		assert.Equal(t, want, worlds.Overlap(footprint(onService), footprint(doc)), doc)
	}
}
