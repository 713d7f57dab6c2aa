package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// A deletion of a parent names the routes that it leaves, those without another parent first, to
// readers of all objects; to others it names those in its own namespace.
func TestDeletedParents(t *testing.T) {
	const (
		g       = "{namespace: infra, name: g}"
		h       = "{namespace: infra, name: h}"
		set     = "{kind: ListenerSet, namespace: infra, name: s}"
		shop    = "{group: '', kind: Service, namespace: app, name: shop}"
		gateway = " on Gateway infra/g, which is deleted"
		hint    = "; kubectl overrule check --delete names them"
	)
	gateways := docs(
		"kind: GatewayClass\nmetadata: {name: istio}", "kind: Namespace\nmetadata: {name: infra}", worlds.ServiceDoc("app", "shop", 80),
		gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), worlds.SetDoc("infra", "s", "g", "more"),
	)
	on := func(parents string, routes ...string) string {
		var out []string
		for _, r := range routes {
			namespace, name, _ := strings.Cut(r, "/")
			out = append(out, "kind: HTTPRoute\nmetadata: {namespace: "+namespace+", name: "+name+"}\nspec: {parentRefs: ["+parents+"]}")
		}
		return docs(out...)
	}
	for name, c := range map[string]struct {
		routes, deleted string
		// all and own are what is said to the two kinds of readers: "" for nothing, "same" for the same.
		all, own string
	}{
		"its only parent": {
			on(g, "app/r"), "Gateway infra/g",
			"HTTPRoute app/r" + gateway + "; no other parent accepts it", "1 route in 1 namespace" + gateway + "; no other parent accepts it" + hint,
		},
		"some in its own namespace": {
			on(g, "app/r", "infra/r"), "Gateway infra/g",
			"HTTPRoute app/r and HTTPRoute infra/r" + gateway + "; no other parent accepts them",
			"2 routes in 2 namespaces" + gateway + ": HTTPRoute infra/r and 1 more; no other parent accepts them",
		},
		"some have another parent": {
			docs(on(g+", "+h, "a/both"), on(g, "a/r1", "a/r2", "a/r3", "b/r4")), "Gateway infra/g",
			"5 routes in 2 namespaces" + gateway + ": HTTPRoute a/r1, HTTPRoute a/r2, HTTPRoute a/r3, HTTPRoute b/r4 and 1 more; no other parent accepts 4 of them",
			"5 routes in 2 namespaces" + gateway + "; no other parent accepts 4 of them" + hint,
		},
		"all have another parent": {
			on(g+", "+h, "infra/r", "infra/s"), "Gateway infra/g",
			"HTTPRoute infra/r and HTTPRoute infra/s" + gateway + "; another parent accepts each of them", "same",
		},
		"one has another parent": {
			on(g+", "+h, "infra/r"), "Gateway infra/g",
			"HTTPRoute infra/r" + gateway + "; another parent accepts it", "same",
		},
		"a parent that is not read may serve it": {
			on(g+", {group: example.com, kind: Edge, name: e}", "infra/r"), "Gateway infra/g",
			"HTTPRoute infra/r" + gateway + "; another parent accepts it", "same",
		},
		"a parent that did not accept it": {on("{namespace: infra, name: g, sectionName: none}", "infra/r"), "Gateway infra/g", "", ""},
		"a gateway with its listener sets": {
			docs(on(set, "infra/a"), on(set+", "+g, "infra/b")), "Gateway infra/g",
			"HTTPRoute infra/a and HTTPRoute infra/b" + gateway + "; no other parent accepts them", "same",
		},
		"a listener set": {
			docs(on(set, "infra/a"), on(set+", "+g, "infra/b")), "ListenerSet infra/s",
			"HTTPRoute infra/a and HTTPRoute infra/b on ListenerSet infra/s, which is deleted; no other parent accepts 1 of them", "same",
		},
		"a Service": {
			on(shop, "app/r"), "Service app/shop",
			"HTTPRoute app/r on Service app/shop, which is deleted; no other parent accepts it", "same",
		},
		"a namespace: its own routes are deleted with it": {
			docs(on(g, "infra/r", "app/r"), on(h, "app/s")), "Namespace infra",
			"HTTPRoute app/r and HTTPRoute app/s on parents in Namespace infra, which is deleted; no other parent accepts them",
			"2 routes in 1 namespace on parents in Namespace infra, which is deleted; no other parent accepts them" + hint,
		},
		"a class: its gateways remain": {on(g, "app/r"), "GatewayClass istio", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(gateways, c.routes))
			kind, key, _ := strings.Cut(c.deleted, " ")
			namespace, name, found := strings.Cut(key, "/")
			if !found {
				namespace, name = "", key
			}
			before := v.Get(read(t, v, fmt.Sprintf("{kind: %s, metadata: {namespace: %q, name: %s}}", kind, namespace, name)).Ref())
			for all, want := range map[bool]string{true: c.all, false: c.own} {
				ev, err := (&guard.Guard{Engine: effective.NewEngine(), ReadsAll: all}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: before}, nil)
				require.NoError(t, err)
				var got []string
				for _, f := range ev.Warnings {
					if f.Code == api.ReasonUnreached {
						got = append(got, f.Message())
					}
				}
				if want == "same" {
					want = c.all
				}
				if want == "" {
					assert.Empty(t, got)
				} else {
					assert.Equal(t, []string{"no request would reach " + want}, got)
				}
			}
		})
	}
}
