package guard_test

import (
	"overrule.dev/overrule/test/worlds"
)

// granted is a world whose Paints may target by a ReferenceGrant: app/own is on
// a Service and a gateway of other namespaces.
func granted(more ...string) string {
	return base(append([]string{
		worlds.ProfileDoc("Probe", "strategy: {allowed: [merge]}\nsameTarget: none\nlevels: [Gateway, Route, Backend]\nshortPaths: true"),
		worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs], namespaces: referenceGrant}\nstrategy: {allowed: [merge]}"),
		policyDoc("Paint", "app", "own", "targetRefs: [{kind: Gateway, name: g, namespace: infra}]\na: 1"),
	}, more...)...)
}

const (
	paints   = "{group: example.com, kind: Paint, namespace: app}"
	gateways = "{group: gateway.networking.k8s.io, kind: Gateway}"
)
