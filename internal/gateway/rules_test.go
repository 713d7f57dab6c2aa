package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

// ruled is an HTTPRoute app/r with those rules.
func ruled(t testing.TB, rules string) *gateway.Route {
	return routing(t, "app", "{rules: "+rules+"}")
}

// SEMANTICS section 5: a rule without a name is shown as rule-N.
func TestSections(t *testing.T) {
	tests := map[string]struct {
		rules   string
		shown   []string
		section string
		means   []int
	}{
		"a name":                              {"[{name: x}, {name: z}]", []string{"x", "z"}, "z", []int{1}},
		"rule-N is the unnamed N-th":          {"[{}, {}]", []string{"rule-1", "rule-2"}, "rule-2", []int{1}},
		"it counts the named ones, too":       {"[{name: x}, {}]", []string{"x", "rule-2"}, "rule-2", []int{1}},
		"it never means a named rule":         {"[{name: x}, {}]", []string{"x", "rule-2"}, "rule-1", nil},
		"unless a rule is really named so":    {"[{name: rule-2}, {}]", []string{"rule-2", "rule-2"}, "rule-2", []int{0}},
		"a real name means no other position": {"[{}, {}, {name: rule-1}]", []string{"rule-1", "rule-2", "rule-1"}, "rule-1", []int{2}},
		"there is no rule-0":                  {"[{}]", []string{"rule-1"}, "rule-0", nil},
		"nor one beyond the last":             {"[{}]", []string{"rule-1"}, "rule-2", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := ruled(t, test.rules)
			var shown []string
			var means []int
			for i := range r.Rules {
				shown = append(shown, r.RuleName(i))
				if r.RuleAt(test.section, i) {
					means = append(means, i)
				}
			}
			assert.Equal(t, test.shown, shown)
			assert.Equal(t, test.means, means)
			assert.Equal(t, test.means != nil, r.HasSection(test.section))
		})
	}
}

// Rules are matched before anything is called evaded.
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
		"nothing changed":                                          {"[{" + a + "}, {" + b + "}]", "[{" + a + "}, {" + b + "}]", []int{0, 1}},
		"one inserted in front":                                    {"[{" + a + "}, {" + b + "}]", "[{" + c + "}, {" + a + "}, {" + b + "}]", []int{-1, 0, 1}},
		"one taken out in front":                                   {"[{" + a + "}, {" + b + "}]", "[{" + b + "}]", []int{1}},
		"reordered":                                                {"[{" + a + "}, {" + b + "}, {" + c + "}]", "[{" + c + "}, {" + a + "}, {" + b + "}]", []int{2, 0, 1}},
		"edited in its place":                                      {"[{" + a + "}, {" + b + "}]", "[{" + a + "}, {" + c + "}]", []int{0, 1}},
		"named ones by name, whatever they match":                  {"[{name: x, " + a + "}, {name: other, " + b + "}]", "[{name: other, " + a + "}, {name: x, " + b + "}]", []int{1, 0}},
		"renamed: by its matches":                                  {"[{name: x, " + a + "}, {name: other, " + b + "}]", "[{name: z, " + a + "}, {name: other, " + b + "}]", []int{0, 1}},
		"named for the first time: by its matches":                 {"[{" + a + "}, {" + b + "}]", "[{" + b + "}, {name: x, " + a + "}]", []int{1, 0}},
		"duplicates pair in order":                                 {"[{" + a + "}, {" + a + "}]", "[{" + a + "}, {" + a + "}, {" + a + "}]", []int{0, 1, -1}},
		"a named one is never paired by position":                  {"[{name: x, " + a + "}]", "[{name: other, " + b + "}]", []int{-1}},
		"a position that is taken pairs no other":                  {"[{" + a + "}, {" + b + "}]", "[{" + c + "}, {" + a + "}]", []int{-1, 0}},
		"one with fewer rules, the last gone":                      {"[{" + a + "}, {" + b + "}]", "[{" + a + "}]", []int{0}},
		"from no rules at all":                                     {"[]", "[{" + a + "}]", []int{-1}},
		"to no rules at all":                                       {"[{" + a + "}]", "[]", []int{}},
		"names swapped and matches swapped":                        {"[{name: x, " + a + "}, {name: z, " + b + "}]", "[{name: z, " + a + "}, {name: x, " + b + "}]", []int{1, 0}},
		"spelled otherwise, and moved":                             {"[{" + a + "}, {" + b + "}]", "[{matches: [{path: {value: /b, type: PathPrefix}}]}, {matches: [{path: {value: /a, type: PathPrefix}}]}]", []int{1, 0}},
		"matches that cannot be read are told apart by their text": {"[{matches: 1}, {matches: 2}]", "[{matches: 2}, {matches: 1}]", []int{1, 0}},
		"a default written out is the same rule":                   {"[{matches: [{path: {type: PathPrefix, value: /}}]}]", "[{" + a + "}, {}]", []int{-1, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, gateway.MatchRules(ruled(t, test.before), ruled(t, test.after)))
		})
	}
}

// A backend of weight 0 is sent nothing.
func TestBackendsThatARuleServes(t *testing.T) {
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
