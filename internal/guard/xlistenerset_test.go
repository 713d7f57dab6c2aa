package guard_test

import (
	"strings"
	"testing"

	"overrule.dev/overrule/test/worlds"
)

// An XListenerSet is read as a ListenerSet is, and is not the one of its name.
func TestRouteMovesToXListenerSet(t *testing.T) {
	g, h, onG := gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g")
	x := func(gw string) string {
		return strings.Replace(worlds.SetDoc("app", "s", gw, "lower"), "kind: ListenerSet", "kind: XListenerSet", 1)
	}
	const toX = "{group: gateway.networking.x-k8s.io, kind: XListenerSet, namespace: app, name: s}"
	lost := evaded("Paint infra/top", "Listener app/s#lower")
	runOverrideCases(t, map[string]overrideCase{
		"of another gateway":               {before: docs(g, h, x("h"), onG, at("g", "")), write: toParents(two, toX), want: lost},
		"of the same gateway":              {before: docs(g, h, x("g"), onG, at("g", "")), write: toParents(two, toX)},
		"beside a ListenerSet of its name": {before: docs(g, h, x("h"), worlds.SetDoc("app", "s", "g", "lower"), onG, at("g", "")), write: toParents(two, toX), want: lost},
		"that moves to another gateway":    {before: docs(g, h, x("g"), toParents(two, toX), at("g", "")), write: x("h"), want: lost},
		"from the ListenerSet of its name": {before: docs(g, h, x("h"), worlds.SetDoc("app", "s", "g", "lower"), toParents(two, worlds.ToSet("app", "s")), at("g", "")), write: toParents(two, toX), want: lost},
	})
}
