package merge_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

const (
	atomic = merge.Atomic
	mixed  = merge.Merge
	patch  = merge.Patch
)

// The worked results of SEMANTICS section 4, by their numbers.
func TestWorkedResults(t *testing.T) {
	const (
		authenticationA = "rules.authentication.a"
		authenticationB = "rules.authentication.b"
		authenticationC = "rules.authentication.c"
		authorizationB  = "rules.authorization.b"
		authorizationD  = "rules.authorization.d"
	)
	g := func(b merge.Rules) *merge.Policy { return policy("gw", b) }
	r := func(rules ...merge.Rule) *merge.Policy { return policy("route", bare(rules...)) }
	both := func() []merge.Rule { return []merge.Rule{rule(authenticationA, "G"), rule(authorizationB, "G")} }
	fifty := func() merge.Rules {
		return when(overrides(mixed, rule(authenticationA, 50)), over(authenticationA, 50))
	}
	tests := map[string]struct {
		gateway, route  *merge.Policy
		effective, lost []string
		spec            map[string]any
	}{
		"A1 atomic defaults give way to a route that has rules": {
			gateway:   g(defaults(atomic, both()...)),
			route:     r(rule(authenticationC, "R")),
			effective: []string{"rules.authentication.c=R route/bare"},
			lost:      []string{"gw: rules.authentication.a defaults to route/bare", "gw: rules.authorization.b defaults to route/bare"},
			spec:      nested("R", authenticationC),
		},
		"B1 merged defaults join the rules of the route": {
			gateway: g(defaults(mixed, both()...)),
			route:   r(rule(authenticationC, "R")),
			effective: []string{
				"rules.authentication.a=G gw/defaults", "rules.authentication.c=R route/bare", "rules.authorization.b=G gw/defaults",
			},
		},
		"B2 merged defaults give way rule by rule": {
			gateway:   g(defaults(mixed, both()...)),
			route:     r(rule(authenticationA, "R")),
			effective: []string{"rules.authentication.a=R route/bare", "rules.authorization.b=G gw/defaults"},
			lost:      []string{"gw: rules.authentication.a defaults to route/bare"},
		},
		"C1 atomic overrides replace all": {
			gateway:   g(overrides(atomic, both()...)),
			route:     r(rule(authenticationC, "R")),
			effective: []string{"rules.authentication.a=G gw/overrides", "rules.authorization.b=G gw/overrides"},
			lost:      []string{"route: rules.authentication.c bare to gw/overrides"},
		},
		"D1 merged overrides leave other rules alone": {
			gateway: g(overrides(mixed, both()...)),
			route:   r(rule(authenticationC, "R")),
			effective: []string{
				"rules.authentication.a=G gw/overrides", "rules.authentication.c=R route/bare", "rules.authorization.b=G gw/overrides",
			},
		},
		"D2 merged overrides win rule by rule": {
			gateway: g(overrides(mixed, both()...)),
			route:   r(rule(authenticationA, "R"), rule(authorizationD, "R")),
			effective: []string{
				"rules.authentication.a=G gw/overrides", "rules.authorization.b=G gw/overrides", "rules.authorization.d=R route/bare",
			},
			lost: []string{"route: rules.authentication.a bare to gw/overrides"},
		},
		"E1 a constraint that is kept takes no part": {
			gateway:   g(fifty()),
			route:     r(rule(authenticationA, 30), rule(authenticationB, 120)),
			effective: []string{"rules.authentication.a=30 route/bare", "rules.authentication.b=120 route/bare"},
		},
		"E2 a constraint that is broken clips its rule": {
			gateway:   g(fifty()),
			route:     r(rule(authenticationA, 100), rule(authenticationB, 120)),
			effective: []string{"rules.authentication.a=50 gw/overrides?", "rules.authentication.b=120 route/bare"},
			lost:      []string{"route: rules.authentication.a bare to gw/overrides?"},
		},
		"E3 a broken constraint replaces the whole rule, its second rate too": {
			gateway: g(when(overrides(mixed, rule("limits.a", rates(50, "10s"))), anyRateOver("limits.a.rates", 50))),
			route: r(
				rule("limits.a", rates(100, "1m", 10000, "24h")),
				rule("limits.b", rates(1, "1s")),
			),
			effective: []string{
				"limits.a=map[rates:[map[limit:50 window:10s]]] gw/overrides?",
				"limits.b=map[rates:[map[limit:1 window:1s]]] route/bare",
			},
			lost: []string{"route: limits.a bare to gw/overrides?"},
			spec: map[string]any{"limits": map[string]any{"a": rates(50, "10s"), "b": rates(1, "1s")}},
		},
		"F1 unset takes a default out": {
			gateway:   g(defaults(mixed, rule(authenticationA, "G"))),
			route:     unsets(t, r(rule(authenticationB, "R")), authenticationA),
			effective: []string{"rules.authentication.b=R route/bare"},
			lost:      []string{"gw: rules.authentication.a defaults to route/unset"},
		},
		"F2 unset has no effect on an override": {
			gateway:   g(overrides(mixed, rule(authenticationA, "G"))),
			route:     unsets(t, r(rule(authenticationB, "R")), authenticationA),
			effective: []string{"rules.authentication.a=G gw/overrides", "rules.authentication.b=R route/bare"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := fold(t, stack(test.gateway, test.route)...)
			assert.Equal(t, test.effective, effectiveOf(result))
			assert.Equal(t, test.lost, lossesOf(result))
			assert.Empty(t, result.Notes)
			if test.spec != nil {
				assert.Equal(t, test.spec, result.Spec())
			}
		})
	}
}

// rates is the content of a limit: pairs of a number and a window.
func rates(pairs ...any) map[string]any {
	var list []any
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, map[string]any{"limit": int64(pairs[i].(int)), "window": pairs[i+1]})
	}
	return map[string]any{"rates": list}
}

func anyRateOver(key string, limit int64) merge.Condition {
	return condition{text: "exists", answer: func(spec map[string]any) merge.Answer {
		value, missing, beside := lookup(spec, key)
		if missing != "" {
			return merge.Answer{Missing: missing, HasSiblings: beside}
		}
		for _, rate := range value.([]any) {
			n, ok := rate.(map[string]any)["limit"].(int64)
			if !ok {
				return merge.Answer{Err: errors.New("no such key: limit")}
			}
			if n > limit {
				return merge.Answer{Met: true}
			}
		}
		return merge.Answer{}
	}}
}

// nested is a spec of one value at a key.
func nested(value any, key string) map[string]any {
	k, _ := merge.ParseKey(key)
	segments := k.Segments()
	out := any(value)
	for _, segment := range slices.Backward(segments) {
		out = map[string]any{segment: out}
	}
	return out.(map[string]any)
}
