package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

// ruled is an HTTPRoute app/r with rules.
func ruled(t testing.TB, rules string) *gateway.Route {
	return routing(t, "app", "{rules: "+rules+"}")
}

// MatchRules pairs rules before and after an update.
func TestMatchRules(t *testing.T) {
	const (
		a = "matches: [{path: {value: /a}}]"
		b = "matches: [{path: {value: /b}}]"
		c = "matches: [{path: {value: /c}}]"
	)
	tests := map[string]struct {
		before, after string
		want          []int
	}{
		"nothing changed":                          {"[{" + a + "}, {" + b + "}]", "[{" + a + "}, {" + b + "}]", []int{0, 1}},
		"one inserted in front":                    {"[{" + a + "}, {" + b + "}]", "[{" + c + "}, {" + a + "}, {" + b + "}]", []int{-1, 0, 1}},
		"one taken out in front":                   {"[{" + a + "}, {" + b + "}]", "[{" + b + "}]", []int{1}},
		"reordered":                                {"[{" + a + "}, {" + b + "}, {" + c + "}]", "[{" + c + "}, {" + a + "}, {" + b + "}]", []int{2, 0, 1}},
		"edited in its place":                      {"[{" + a + "}, {" + b + "}]", "[{" + a + "}, {" + c + "}]", []int{0, 1}},
		"two swap their names: by their matches":   {"[{name: x, " + a + "}, {name: other, " + b + "}]", "[{name: other, " + a + "}, {name: x, " + b + "}]", []int{0, 1}},
		"named ones by name where matches differ":  {"[{name: x, " + a + "}, {name: other, " + b + "}]", "[{name: other, " + c + "}, {name: x, matches: []}]", []int{1, 0}},
		"of two with the same matches by name":     {"[{name: x, " + a + "}, {name: other, " + a + "}]", "[{name: other, " + a + "}, {name: x, " + a + "}]", []int{1, 0}},
		"renamed: by its matches":                  {"[{name: x, " + a + "}, {name: other, " + b + "}]", "[{name: z, " + a + "}, {name: other, " + b + "}]", []int{0, 1}},
		"named for the first time: by its matches": {"[{" + a + "}, {" + b + "}]", "[{" + b + "}, {name: x, " + a + "}]", []int{1, 0}},
		"duplicates pair in order":                 {"[{" + a + "}, {" + a + "}]", "[{" + a + "}, {" + a + "}, {" + a + "}]", []int{0, 1, -1}},
		"a named one is never paired by position":  {"[{name: x, " + a + "}]", "[{name: other, " + b + "}]", []int{-1}},
		"a position that is taken pairs no other":  {"[{" + a + "}, {" + b + "}]", "[{" + c + "}, {" + a + "}]", []int{-1, 0}},
		"one with fewer rules, the last removed":   {"[{" + a + "}, {" + b + "}]", "[{" + a + "}]", []int{0}},
		"from no rules at all":                     {"[]", "[{" + a + "}]", []int{-1}},
		"to no rules at all":                       {"[{" + a + "}]", "[]", []int{}},
		"moved to the other one's matches":         {"[{name: x, " + a + "}, {name: z, " + b + "}]", "[{name: x, " + b + "}, {name: z, " + a + "}]", []int{1, 0}},
		"matches in another order, headers too": {
			"[{name: x, matches: [{path: {value: /a}}, {headers: [{name: H, value: v}, {name: i, value: w}], path: {value: /b/}}]}, {name: z}]",
			"[{name: z, matches: [{headers: [{name: I, value: w}, {name: h, value: v}], path: {value: /b}}, {path: {value: /a}}]}, {name: x}]", []int{0, 1},
		},
		"spelled otherwise, and moved":           {"[{" + a + "}, {" + b + "}]", "[{matches: [{path: {value: /b, type: PathPrefix}}]}, {matches: [{path: {value: /a, type: PathPrefix}}]}]", []int{1, 0}},
		"invalid matches are compared as text":   {"[{matches: 1}, {matches: 2}]", "[{matches: 2}, {matches: 1}]", []int{1, 0}},
		"a default written out is the same rule": {"[{matches: [{path: {type: PathPrefix, value: /}}]}]", "[{" + a + "}, {}]", []int{-1, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, gateway.MatchRules(ruled(t, test.before), ruled(t, test.after)))
		})
	}
}

// A backend of weight 0 receives no requests.
func TestTakesOver(t *testing.T) {
	r := ruled(t, "[{backendRefs: [{name: plain, port: 80}, {name: some, port: 80, weight: 3}, {name: idle, port: 80, weight: 0}, "+
		"{name: twice, port: 80, weight: 0}, {name: twice, port: 80, weight: 1}]}]")
	var served []string
	for _, b := range r.Rules[0].Backends {
		if r.Rules[0].Serves(b) {
			served = append(served, b.Object.Name)
		}
	}
	assert.Equal(t, []string{"plain", "some", "twice"}, served)
	assert.Len(t, r.Rules[0].Backends, 4)
	assert.False(t, r.Rules[0].Serves(gateway.Backend{}), "one that it does not name")
}

// A rule takes requests from another one by a match that that one had.
func TestTakesFrom(t *testing.T) {
	const a, b, other = "{path: {value: /a}}", "{path: {value: /b}}", "{matches: [{path: {value: /other}}]}"
	tests := map[string]struct {
		before, after string // the rules of a route
		takes         bool   // the second from the first
	}{
		"nothing moves":           {"[{matches: [" + a + "]}, " + other + "]", "[{matches: [" + a + "]}, " + other + "]", false},
		"one of two moves":        {"[{name: x, matches: [" + a + ", " + b + "]}, {name: z, matches: [{path: {value: /other}}]}]", "[{name: x, matches: [" + a + "]}, {name: z, matches: [{path: {value: /other}}, " + b + "]}]", true},
		"one is given up":         {"[{name: x, matches: [" + a + ", " + b + "]}, {name: z}]", "[{name: x, matches: [" + a + "]}, {name: z}]", false},
		"names are swapped":       {"[{name: x, matches: [" + a + "]}, {name: z, matches: [" + b + "]}]", "[{name: x, matches: [" + b + "]}, {name: z, matches: [" + a + "]}]", true},
		"both have it, as before": {"[{name: x, matches: [" + a + "]}, {name: z, matches: [" + a + "]}]", "[{name: x, matches: [" + a + "]}, {name: z, matches: [" + a + "]}]", false},
		"a default is written out, and a match more": {
			"[{name: x, matches: [" + a + "]}, {name: z}]", "[{name: x, matches: [{path: {type: PathPrefix, value: /a}}, " + b + "]}, {name: z}]", false,
		},
		"another type of match is another one": {
			"[{name: x, matches: [" + a + "]}, {name: z}]", "[{name: x, matches: [{path: {type: Exact, value: /a}}]}, {name: z, matches: [" + a + "]}]", true,
		},
		"a header more is another one": {
			"[{name: x, matches: [" + a + "]}, {name: z}]", "[{name: x, matches: [{path: {value: /a}, headers: [{name: h, value: v}]}]}, {name: z}]", false,
		},
		"no matches is the one for all": {"[{name: x}, {name: z, matches: [" + a + "]}]", "[{name: x, matches: [" + b + "]}, {name: z, matches: [{path: {type: PathPrefix, value: /}}]}]", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := ruled(t, test.before), ruled(t, test.after)
			assert.Equal(t, test.takes, gateway.TakesFrom(before, 0, after, 1))
		})
	}
}
