package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

const workedObjects = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gateway}
spec: {gatewayClassName: example, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route}
spec: {parentRefs: [{name: gateway}], rules: [{}]}
---
apiVersion: kuadrant.io/v1
kind: %[1]s
metadata: {name: G}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: gateway}
  %[2]s
---
apiVersion: kuadrant.io/v1
kind: %[1]s
metadata: {name: R}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: route}
  %[3]s
`

// TestWorkedResults tests the worked results of docs/semantics.md by their
// numbers, with Kuadrant's kinds: one gateway, one route. The warnings of F2 and
// E3 are in test/cases.
func TestWorkedResults(t *testing.T) {
	const (
		two      = "rules: {authentication: {a: {by: G}}, authorization: {b: {by: G}}}"
		onlyA    = "rules: {authentication: {a: {by: G}}}"
		bareC    = "rules: {authentication: {c: {by: R}}}"
		fifty    = `overrides: {strategy: merge, when: "spec.rules.authentication.a > 50", rules: {authentication: {a: 50}}}`
		unsetOfA = "rules: {authentication: {b: {by: R}}}\n  unset: [rules.authentication.a]"
	)
	defaults := func(strategy, rules string) string { return "defaults: {strategy: " + strategy + ", " + rules + "}" }
	overrides := func(strategy, rules string) string { return "overrides: {strategy: " + strategy + ", " + rules + "}" }
	tests := map[string]struct {
		kind, gateway, route string
		effective            string // rules with their origins
		spec                 obj    // if the values are not the names of their writers
		states               [2]api.State
	}{
		"A1": {
			"AuthPolicy", defaults("atomic", two), bareC,
			"authentication.c{R}", nil, [2]api.State{api.Overridden, api.Enforced},
		},
		"B1": {
			"AuthPolicy", defaults("merge", two), bareC,
			"authentication.a{G} authentication.c{R} authorization.b{G}", nil, [2]api.State{api.Enforced, api.Enforced},
		},
		"B2": {
			"AuthPolicy", defaults("merge", two), "rules: {authentication: {a: {by: R}}}",
			"authentication.a{R} authorization.b{G}", nil, [2]api.State{api.PartiallyEnforced, api.Enforced},
		},
		"C1": {
			"AuthPolicy", overrides("atomic", two), bareC,
			"authentication.a{G} authorization.b{G}", nil, [2]api.State{api.Enforced, api.Overridden},
		},
		"D1": {
			"AuthPolicy", overrides("merge", two), bareC,
			"authentication.a{G} authentication.c{R} authorization.b{G}", nil, [2]api.State{api.Enforced, api.Enforced},
		},
		"D2": {
			"AuthPolicy", overrides("merge", two), "rules: {authentication: {a: {by: R}}, authorization: {d: {by: R}}}",
			"authentication.a{G} authorization.b{G} authorization.d{R}", nil, [2]api.State{api.Enforced, api.PartiallyEnforced},
		},
		"E1": {
			"AuthPolicy", fifty, "rules: {authentication: {a: 30, b: 120}}", "authentication.a{R} authentication.b{R}",
			obj{"rules": obj{"authentication": obj{"a": int64(30), "b": int64(120)}}}, [2]api.State{api.Inactive, api.Enforced},
		},
		"E2": {
			"AuthPolicy", fifty, "rules: {authentication: {a: 100, b: 120}}", "authentication.a{G} authentication.b{R}",
			obj{"rules": obj{"authentication": obj{"a": int64(50), "b": int64(120)}}}, [2]api.State{api.Enforced, api.PartiallyEnforced},
		},
		"E3": {
			"RateLimitPolicy",
			`overrides: {strategy: merge, when: "spec.limits.a.rates.exists(r, r.limit > 50)", limits: {a: {rates: [{limit: 50, window: 10s}]}}}`,
			"limits: {a: {rates: [{limit: 100, window: 1m}, {limit: 10000, window: 24h}]}, b: {rates: [{limit: 1, window: 1s}]}}",
			"limits.a{G} limits.b{R}",
			obj{"limits": obj{
				"a": obj{"rates": []any{obj{"limit": int64(50), "window": "10s"}}},
				"b": obj{"rates": []any{obj{"limit": int64(1), "window": "1s"}}},
			}}, [2]api.State{api.Enforced, api.PartiallyEnforced},
		},
		"F1": {
			"AuthPolicy", defaults("merge", onlyA), unsetOfA,
			"authentication.b{R}", nil, [2]api.State{api.Overridden, api.Enforced},
		},
		"F2": {
			"AuthPolicy", overrides("merge", onlyA), unsetOfA,
			"authentication.a{G} authentication.b{R}", nil, [2]api.State{api.Enforced, api.Enforced},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := read(t, fmt.Sprintf(workedObjects, test.kind, test.gateway, test.route))
			item := w.at(t, "gateway > route")
			var got []string
			for _, r := range item.Rules {
				got = append(got, strings.TrimPrefix(r.Rule, "rules.")+"{"+r.From.Name+"}")
			}
			assert.Equal(t, test.effective, strings.Join(got, " "))
			if test.spec == nil {
				test.spec = writers(strings.Fields(test.effective))
			}
			assert.Equal(t, test.spec, item.Spec)
			assert.Equal(t, test.states[0], w.outcomes["G"].State, "G")
			assert.Equal(t, test.states[1], w.outcomes["R"].State, "R")
		})
	}
}

// writers returns the spec of rules whose values are the names of their writers.
func writers(rules []string) obj {
	out := make(obj)
	for _, rule := range rules {
		key, by, _ := strings.Cut(strings.TrimSuffix(rule, "}"), "{")
		group, name, _ := strings.Cut(key, ".")
		if out[group] == nil {
			out[group] = make(obj)
		}
		out[group].(obj)[name] = obj{"by": by}
	}
	return obj{"rules": out}
}
