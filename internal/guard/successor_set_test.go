package guard_test

import (
	"strings"
	"testing"

	"overrule.dev/overrule/test/worlds"
)

// A ListenerSet moves, and the paths of the kind end at its listener.
func TestListenerSetMoves(t *testing.T) {
	coat := worlds.ProfileDoc("Coat", "levels: [Gateway, ListenerSet, Listener]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	coated := func(more string) string {
		return policyDoc("Coat", "infra", "top", "targetRefs: ["+more+"]\noverrides: {a: 1}")
	}
	open := func(name string) string { return gatewayDoc(name, "istio", "http") }
	closed := strings.Replace(open("i"), "allowedListeners: {namespaces: {from: All}}", "allowedListeners: {namespaces: {from: None}}", 1)
	const onG, onH, onBoth = "{kind: Gateway, name: g}", "{kind: Gateway, name: h}", "{kind: Gateway, name: g}, {kind: Gateway, name: h}"
	before := func(policy string) string {
		return docs(coat, open("g"), open("h"), worlds.SetDoc("app", "s", "g", "lower"), coated(policy))
	}
	lost := func(cause string) []string {
		return []string{"OverrideEvaded a Coat infra/top: Listener app/s#lower, " + cause}
	}
	ofSet := policyDoc("Coat", "app", "top", "targetRefs: [{kind: ListenerSet, name: s, sectionName: lower}]\noverrides: {a: 1}")
	set := func(gw string, listeners ...string) string {
		return worlds.SetDoc("app", "s", gw, listeners...)
	}
	unread := strings.Replace(set("g", "lower"), "parentRef: {", "parentRef: {group: example.com, kind: Mesh, ", 1)
	samePort := func(gw string) string {
		return strings.Replace(set(gw, "lower", "other"), "port: 81", "port: 80", 1)
	}
	toH := lost("Gateway infra/h")
	ways := map[string]overrideCase{
		"to another gateway":                          {before: before(onG), write: set("h", "lower"), want: toH},
		"to another gateway, by another name":         {before: before(onG), write: set("h", "new"), want: toH},
		"to another gateway with the same policy":     {before: before(onBoth), write: set("h", "lower")},
		"to another gateway with its policy":          {before: docs(before(onH), ofSet), write: set("h", "lower"), of: "Coat app/top"},
		"to another gateway with that of a listener":  {before: docs(coat, open("g"), open("h"), samePort("g"), ofSet), write: samePort("h"), of: "Coat app/top"},
		"to a gateway that does not exist":            {before: before(onG), write: set("none", "lower")},
		"to a gateway that does not admit it":         {before: docs(before(onG), closed), write: set("i", "lower")},
		"to a parent that is not read":                {before: before(onG), write: unread, want: lost("Mesh infra/g, example.com")},
		"to a parent that is not read, by its policy": {before: docs(before(onH), ofSet), write: unread, of: "Coat app/top"},
		"it is deleted":                               {before: before(onG), delete: set("g", "lower")},
		"its gateway is deleted":                      {before: before(onG), delete: open("g")},
	}
	for name, w := range ways {
		if w.of == "" {
			w.of = "Coat infra/top"
		}
		t.Run(name, w.run)
	}
}
