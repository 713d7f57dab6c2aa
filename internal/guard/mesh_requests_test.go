package guard_test

import (
	"fmt"
	"strings"

	"overrule.dev/overrule/test/worlds"
)

// net is a kind whose paths start at Services and end at rules.
var net = worlds.ProfileDoc("Net", "levels: [ServiceNamespace, Service, RouteNamespace, Route, Rule]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")

// netOn is an override of app.
func netOn(targetRef string) string {
	return policyDoc("Net", "app", "top", "targetRefs: ["+targetRef+"]\noverrides: {a: 1}")
}

// meshRoute is a route with the Service app/s as its parent.
func meshRoute(kind, namespace, name, rules string, created int) string {
	doc := worlds.RouteTo(kind, namespace, name, rules, worlds.ToService("app", "s"))
	return strings.Replace(doc, "name: "+name+"}", fmt.Sprintf("name: %s, creationTimestamp: '20%d-01-01T00:00:00Z'}", name, created), 1)
}
