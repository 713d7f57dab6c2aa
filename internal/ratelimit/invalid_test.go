package ratelimit

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/messages"
)

const rate = "rates: [{limit: 1, unit: second}]\n"

func TestReadInvalidLimits(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"examples 1 and 8 as they are printed": {"- rates: [{limit: 5, unit: second}]", []string{
			`spec.limits[a]: Invalid value: "list"`,
		}},
		"null": {"null", []string{
			`spec.limits[a]: Invalid value: "null"`,
		}},
		"a text": {"x", []string{
			`spec.limits[a]: Invalid value: "string"`,
		}},
		"nothing": {"{}", []string{
			`spec.limits[a].rates: Required value`,
		}},
		"no rates": {"rates: []", []string{
			`spec.limits[a].rates: Required value`,
		}},
		"fields that are slips": {rate + "trigers: []\nWhen: []\ncounter: []\nother: 1\n", []string{
			`spec.limits[a].When: Forbidden`,
			`spec.limits[a].counter: Forbidden`,
			`spec.limits[a].other: Forbidden`,
			`spec.limits[a].trigers: Forbidden`,
		}},
		"matches under the limit, as the RFC has them once": {rate + "matches: [{path: {value: /toys}}]\nhostnames: [a.b]\n", []string{
			`spec.limits[a].hostnames: Forbidden`,
			`spec.limits[a].matches: Forbidden`,
		}},
		"fields of the version before": {rate + "conditions: []\nvariables: []\nconfigurations: []\nrules: []\nmaxValue: 1\nseconds: 1\n", []string{
			`spec.limits[a].conditions: Forbidden`,
			`spec.limits[a].configurations: Forbidden`,
			`spec.limits[a].maxValue: Forbidden`,
			`spec.limits[a].rules: Forbidden`,
			`spec.limits[a].seconds: Forbidden`,
			`spec.limits[a].variables: Forbidden`,
		}},
		"a rate in place of rates": {"rates: {limit: 1, unit: second}\nlimit: 1\nduration: 1\nunit: second\n", []string{
			`spec.limits[a].duration: Forbidden`,
			`spec.limits[a].limit: Forbidden`,
			`spec.limits[a].unit: Forbidden`,
			`spec.limits[a].rates: Invalid value: "object"`,
		}},
		"rates of zero, below and beyond": {"rates: [{limit: 0, unit: second}, {limit: -5, unit: second}, {limit: 1.5, unit: second}," +
			" {limit: 9223372036854775808, unit: second}, {limit: -1.0e300, unit: second}]", []string{
			`spec.limits[a].rates[0].limit: Invalid value: 0`,
			`spec.limits[a].rates[1].limit: Invalid value: -5`,
			`spec.limits[a].rates[2].limit: Invalid value: 1.5`,
			`spec.limits[a].rates[3].limit: Invalid value: 9.223372036854776e+18`,
			`spec.limits[a].rates[4].limit: Invalid value: -9223372036854775808`,
		}},
		"rates that are no numbers": {`rates: [{limit: "5", unit: second}, {limit: null, unit: second}, {unit: second}, {limit: true, unit: second}, 5, null]`, []string{
			`spec.limits[a].rates[0].limit: Invalid value: "string"`,
			`spec.limits[a].rates[1].limit: Required value`,
			`spec.limits[a].rates[2].limit: Required value`,
			`spec.limits[a].rates[3].limit: Invalid value: "boolean"`,
			`spec.limits[a].rates[4]: Invalid value: "integer"`,
			`spec.limits[a].rates[5]: Invalid value: "null"`,
		}},
		"durations": {`rates: [{limit: 1, duration: 0, unit: second}, {limit: 1, duration: -1, unit: second}, {limit: 1, duration: 0.5, unit: hour}, {limit: 1, duration: 10s, unit: second}]`, []string{
			`spec.limits[a].rates[0].duration: Invalid value: 0`,
			`spec.limits[a].rates[1].duration: Invalid value: -1`,
			`spec.limits[a].rates[2].duration: Invalid value: 0.5`,
			`spec.limits[a].rates[3].duration: Invalid value: "string"`,
		}},
		"durations that overflow": {`rates: [{limit: 1, duration: 106751991167301, unit: day}, {limit: 1, duration: 2562047788015216, unit: hour}, {limit: 1, duration: 153722867280912931, unit: minute}, {limit: 1, duration: 9223372036854775808, unit: second}]`, []string{
			`spec.limits[a].rates[0].duration: Invalid value: 106751991167301`,
			`spec.limits[a].rates[1].duration: Invalid value: 2562047788015216`,
			`spec.limits[a].rates[2].duration: Invalid value: 153722867280912931`,
			`spec.limits[a].rates[3].duration: Invalid value: 9.223372036854776e+18`,
		}},
		"units": {`rates: [{limit: 1, unit: week}, {limit: 1}, {limit: 1, unit: 1}, {limit: 1, unit: Second}]`, []string{
			`spec.limits[a].rates[0].unit: Unsupported value: "week"`,
			`spec.limits[a].rates[1].unit: Required value`,
			`spec.limits[a].rates[2].unit: Invalid value: "integer"`,
			`spec.limits[a].rates[3].unit: Unsupported value: "Second"`,
		}},
		"fields of a rate that are others'": {`rates: [{limit: 1, unit: second, window: 1s, seconds: 1, maxValue: 1, limits: 1}]`, []string{
			`spec.limits[a].rates[0].limits: Forbidden`,
			`spec.limits[a].rates[0].maxValue: Forbidden`,
			`spec.limits[a].rates[0].seconds: Forbidden`,
			`spec.limits[a].rates[0].window: Forbidden`,
		}},
		"counters": {rate + `counters: [auth.identity.username, auth.identiy.username, 5, null, {expression: a}, auth.identity.username]`, []string{
			`spec.limits[a].counters[1]: Invalid value: "auth.identiy.username"`,
			`spec.limits[a].counters[2]: Invalid value: "integer"`,
			`spec.limits[a].counters[3]: Required value`,
			`spec.limits[a].counters[4]: Invalid value: "object"`,
			`spec.limits[a].counters[5]: Duplicate value: "auth.identity.username"`,
		}},
		"counters that are no list": {rate + `counters: auth.identity.username`, []string{
			`spec.limits[a].counters: Invalid value: "string"`,
		}},
		"conditions": {rate + `when:
- {operator: eq, value: x}
- {selector: auth.a, value: x}
- {selector: auth.a, operator: eq}
- {selector: auth.a, operator: eq, value: 5}
- {selector: auth.a, operator: exists, value: x}
- {selector: auth.a, operator: nexists, value: ""}
- {selector: auth.a, operator: "=", value: x}
- {selector: context.request.http.method, operator: eq, value: GET}
- {selector: 5, operator: eq, value: x}
- {predicate: x, selector: auth.a, operater: eq}
- auth.a == "x"
`, []string{
			`spec.limits[a].when[0].selector: Required value`,
			`spec.limits[a].when[1].operator: Required value`,
			`spec.limits[a].when[2].value: Required value`,
			`spec.limits[a].when[3].value: Invalid value: "integer"`,
			`spec.limits[a].when[4].value: Forbidden`,
			`spec.limits[a].when[5].value: Forbidden`,
			`spec.limits[a].when[6].operator: Unsupported value: "="`,
			`spec.limits[a].when[7].selector: Invalid value: "context.request.http.method"`,
			`spec.limits[a].when[8].selector: Invalid value: "integer"`,
			`spec.limits[a].when[9].operater: Forbidden`,
			`spec.limits[a].when[9].predicate: Forbidden`,
			`spec.limits[a].when[9].operator: Required value`,
			`spec.limits[a].when[10]: Invalid value: "string"`,
		}},
		"expressions": {rate + `when: [{selector: auth.a, operator: matches, value: "(a"}, {selector: auth.a, operator: matches, value: "a{1000}b{1000}"}]`, []string{
			"spec.limits[a].when[0].value: Invalid value: \"(a\"",
			`spec.limits[a].when[1].value: Invalid value: "a{1000}b{1000}"`,
		}},
		"triggers that state nothing": {rate + `triggers: [{}, {matches: []}, {matches: null, hostnames: []}, null, {match: []}]`, []string{
			`spec.limits[a].triggers[0]: Required value`,
			`spec.limits[a].triggers[1]: Required value`,
			`spec.limits[a].triggers[2]: Required value`,
			`spec.limits[a].triggers[3]: Invalid value: "null"`,
			`spec.limits[a].triggers[4].match: Forbidden`,
		}},
		"triggers that are no list, and matches": {rate + `triggers: {matches: []}`, []string{
			`spec.limits[a].triggers: Invalid value: "object"`,
		}},
		"fields of a match in a trigger, and the other way": {rate + `triggers: [{path: {}, method: GET, headers: [], queryParams: [], hosts: []}, {matches: [{hostnames: [a], paths: /a}, x]}]`, []string{
			`spec.limits[a].triggers[0].headers: Forbidden`,
			`spec.limits[a].triggers[0].hosts: Forbidden`,
			`spec.limits[a].triggers[0].method: Forbidden`,
			`spec.limits[a].triggers[0].path: Forbidden`,
			`spec.limits[a].triggers[0].queryParams: Forbidden`,
			`spec.limits[a].triggers[1].matches[0].hostnames: Forbidden`,
			`spec.limits[a].triggers[1].matches[0].paths: Forbidden`,
			`spec.limits[a].triggers[1].matches[1]: Invalid value: "string"`,
		}},
		"paths and methods": {rate + `triggers: [{matches: [
  {path: /toys}, {path: {type: Prefix}}, {path: {value: toys}}, {path: {type: Exact, value: ""}}, {path: {value: //a}}, {path: {value: /a/..}},
  {path: {value: /a%2Fb}}, {path: {value: "/a b"}}, {path: {value: 5}}, {path: {type: RegularExpression, value: "["}}, {path: {vaule: /}},
  {method: get}, {method: 5}, {path: {type: 5}}, {path: {value: "/a/./b#"}}]}]`, []string{
			`spec.limits[a].triggers[0].matches[0].path: Invalid value: "string"`,
			`spec.limits[a].triggers[0].matches[1].path.type: Unsupported value: "Prefix"`,
			`spec.limits[a].triggers[0].matches[2].path.value: Invalid value: "toys"`,
			`spec.limits[a].triggers[0].matches[3].path.value: Invalid value: ""`,
			`spec.limits[a].triggers[0].matches[4].path.value: Invalid value: "//a"`,
			`spec.limits[a].triggers[0].matches[5].path.value: Invalid value: "/a/.."`,
			`spec.limits[a].triggers[0].matches[6].path.value: Invalid value: "/a%2Fb"`,
			`spec.limits[a].triggers[0].matches[7].path.value: Invalid value: "/a b"`,
			`spec.limits[a].triggers[0].matches[8].path.value: Invalid value: "integer"`,
			"spec.limits[a].triggers[0].matches[9].path.value: Invalid value: \"[\"",
			`spec.limits[a].triggers[0].matches[10].path.vaule: Forbidden`,
			`spec.limits[a].triggers[0].matches[11].method: Unsupported value: "get"`,
			`spec.limits[a].triggers[0].matches[12].method: Invalid value: "integer"`,
			`spec.limits[a].triggers[0].matches[13].path.type: Invalid value: "integer"`,
			`spec.limits[a].triggers[0].matches[14].path.value: Invalid value: "/a/./b#"`,
		}},
		"headers and query parameters": {rate + `triggers: [{matches: [
  {headers: [{value: x}, {name: "a b", value: x}, {name: a}, {name: b, value: ""}, {name: c, value: x, type: Prefix}, {name: d, value: "(", type: RegularExpression}, x]},
  {queryParams: [{name: a, value: "a{1000}b{1000}", type: RegularExpression}, {name: b, values: x}]}, {headers: {a: b}}]}]`, []string{
			`spec.limits[a].triggers[0].matches[0].headers[0].name: Required value`,
			"spec.limits[a].triggers[0].matches[0].headers[1].name: Invalid value: \"a b\"",
			`spec.limits[a].triggers[0].matches[0].headers[2].value: Required value`,
			`spec.limits[a].triggers[0].matches[0].headers[3].value: Required value`,
			`spec.limits[a].triggers[0].matches[0].headers[4].type: Unsupported value: "Prefix"`,
			"spec.limits[a].triggers[0].matches[0].headers[5].value: Invalid value: \"(\"",
			`spec.limits[a].triggers[0].matches[0].headers[6]: Invalid value: "string"`,
			`spec.limits[a].triggers[0].matches[1].queryParams[0].value: Invalid value: "a{1000}b{1000}"`,
			`spec.limits[a].triggers[0].matches[1].queryParams[1].values: Forbidden`,
			`spec.limits[a].triggers[0].matches[1].queryParams[1].value: Required value`,
			`spec.limits[a].triggers[0].matches[2].headers: Invalid value: "object"`,
		}},
		"hostnames": {rate + `triggers: [{hostnames: [10.0.0.1, "::1", "[::1]", "a.b:80", "https://a.b", "*", "a.*.b", "", -a.b, A.b, a.B, 5, "a..b"]}]`, []string{
			`spec.limits[a].triggers[0].hostnames[0]: Invalid value: "10.0.0.1"`,
			`spec.limits[a].triggers[0].hostnames[1]: Invalid value: "::1"`,
			`spec.limits[a].triggers[0].hostnames[2]: Invalid value: "[::1]"`,
			`spec.limits[a].triggers[0].hostnames[3]: Invalid value: "a.b:80"`,
			`spec.limits[a].triggers[0].hostnames[4]: Invalid value: "https://a.b"`,
			`spec.limits[a].triggers[0].hostnames[5]: Invalid value: "*"`,
			`spec.limits[a].triggers[0].hostnames[6]: Invalid value: "a.*.b"`,
			`spec.limits[a].triggers[0].hostnames[7]: Invalid value: ""`,
			`spec.limits[a].triggers[0].hostnames[8]: Invalid value: "-a.b"`,
			`spec.limits[a].triggers[0].hostnames[10]: Duplicate value: "a.b"`,
			`spec.limits[a].triggers[0].hostnames[11]: Invalid value: "integer"`,
			`spec.limits[a].triggers[0].hostnames[12]: Invalid value: "a..b"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			limit, errs := Read(at, "a", decoded(t, c.text))
			assert.Nil(t, limit)
			assert.Equal(t, c.want, messages.List(t, errs))
		})
	}
}

// repeated is a list of n items.
func repeated(item any, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item
	}
	return out
}

func TestReadTooLargeLimits(t *testing.T) {
	one := map[string]any{"limit": int64(1), "unit": "second"}
	condition := map[string]any{"selector": "auth.a", "operator": "exists"}
	trigger := func(field string, value any) []any { return []any{map[string]any{field: value}} }
	inMatch := func(field string, value any) []any { return trigger("matches", trigger(field, value)) }
	header := map[string]any{"name": "a", "value": "b"}
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		fields map[string]any
		want   []string
	}{
		"rates":      {map[string]any{"rates": repeated(one, 65)}, []string{"spec.limits[a].rates: Too many: 65"}},
		"counters":   {map[string]any{"counters": repeated("auth.a", 65)}, []string{"spec.limits[a].counters: Too many: 65"}},
		"conditions": {map[string]any{"when": repeated(condition, 65)}, []string{"spec.limits[a].when: Too many: 65"}},
		"triggers":   {map[string]any{"triggers": repeated(map[string]any{}, 65)}, []string{"spec.limits[a].triggers: Too many: 65"}},
		"matches":    {map[string]any{"triggers": trigger("matches", repeated(map[string]any{}, 65))}, []string{"spec.limits[a].triggers[0].matches: Too many: 65"}},
		"hostnames":  {map[string]any{"triggers": trigger("hostnames", repeated("a", 65))}, []string{"spec.limits[a].triggers[0].hostnames: Too many: 65"}},
		"headers":    {map[string]any{"triggers": inMatch("headers", repeated(header, 17))}, []string{"spec.limits[a].triggers[0].matches[0].headers: Too many: 17"}},
		"parameters": {map[string]any{"triggers": inMatch("queryParams", repeated(header, 17))}, []string{"spec.limits[a].triggers[0].matches[0].queryParams: Too many: 17"}},
		"a counter":  {map[string]any{"counters": []any{long(1025)}}, []string{"spec.limits[a].counters[0]: Too long"}},
		"a value": {map[string]any{"when": []any{map[string]any{"selector": "auth.a", "operator": "eq", "value": long(1025)}}},
			[]string{"spec.limits[a].when[0].value: Too long"}},
		"a path": {map[string]any{"triggers": inMatch("path", map[string]any{"value": "/" + long(1024)})},
			[]string{"spec.limits[a].triggers[0].matches[0].path.value: Too long"}},
		"a header": {map[string]any{"triggers": inMatch("headers", []any{map[string]any{"name": long(257), "value": long(4097)}})}, []string{
			"spec.limits[a].triggers[0].matches[0].headers[0].name: Too long",
			"spec.limits[a].triggers[0].matches[0].headers[0].value: Too long",
		}},
		"an expression of a header": {map[string]any{"triggers": inMatch("headers", []any{map[string]any{"name": "a", "value": long(1025), "type": "RegularExpression"}})},
			[]string{"spec.limits[a].triggers[0].matches[0].headers[0].value: Too long"}},
		"a parameter": {map[string]any{"triggers": inMatch("queryParams", []any{map[string]any{"name": "a", "value": long(1025)}})},
			[]string{"spec.limits[a].triggers[0].matches[0].queryParams[0].value: Too long"}},
		"a hostname": {map[string]any{"triggers": trigger("hostnames", []any{long(254)})},
			[]string{"spec.limits[a].triggers[0].hostnames[0]: Too long"}},
		"an unknown field, which is cut": {map[string]any{long(150): 1},
			[]string{"spec.limits[a]." + long(100) + "…: Forbidden"}},
		"one that is cut between letters": {map[string]any{"a" + strings.Repeat("é", 60): 1},
			[]string{"spec.limits[a].a" + strings.Repeat("é", 49) + "…: Forbidden"}},
		"a number that is none": {map[string]any{"rates": []any{map[string]any{"limit": math.NaN(), "unit": "day"}}},
			[]string{"spec.limits[a].rates[0].limit: Invalid value: NaN"}},
		"a number of another kind": {map[string]any{"rates": []any{map[string]any{"limit": uint(1), "unit": "day"}}},
			[]string{`spec.limits[a].rates[0].limit: Invalid value: "number"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fields["rates"] == nil {
				c.fields["rates"] = []any{one}
			}
			limit, errs := Read(at, "a", c.fields)
			assert.Nil(t, limit)
			assert.Equal(t, c.want, messages.List(t, errs))
		})
	}
}

func TestReadLargestLimits(t *testing.T) {
	condition := map[string]any{"selector": "auth.a", "operator": "eq", "value": strings.Repeat("a", 1024)}
	limit, errs := Read(at, "a", map[string]any{
		"rates": repeated(map[string]any{"limit": int64(1), "unit": "second"}, 64), "when": repeated(condition, 64),
	})
	assert.Empty(t, errs)
	assert.Len(t, limit.Rates, 64)
	assert.Len(t, limit.When, 64)
}

func TestReadLimitName(t *testing.T) {
	text := strings.Repeat("a", 254)
	for name, c := range map[string]struct {
		name string
		want []string
	}{
		"an empty one":            {"", []string{`spec.limits[a]: Invalid value: ""`}},
		"one of spaces":           {" ", []string{`spec.limits[a]: Invalid value: " "`}},
		"one that is too long":    {text, []string{`spec.limits[a]: Too long`}},
		"one with a line feed":    {"a\nb", []string{`spec.limits[a]: Invalid value: "a\nb"`}},
		"one with all the rest":   {`a "b"/c.d é`, nil},
		"one of the RFC":          {"toysOrAssetsPerUsername", nil},
		"one of the most letters": {text[1:], nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := Read(at, c.name, decoded(t, rate))
			assert.Equal(t, c.want, messages.List(t, errs))
		})
	}
}
