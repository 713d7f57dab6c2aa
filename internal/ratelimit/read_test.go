package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/decode"
)

// decoded decodes YAML to JSON values like the API server.
func decoded(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	value, err := decode.Value(data)
	require.NoError(t, err)
	return value
}

var at = field.NewPath("spec", "limits").Key("a")

func path(kind gatewayv1.PathMatchType, value string) *gatewayv1.HTTPPathMatch {
	return &gatewayv1.HTTPPathMatch{Type: &kind, Value: &value}
}

func match(m gatewayv1.HTTPRouteMatch) Match { return Match{m} }

var (
	get  = new(gatewayv1.HTTPMethodGet)
	post = new(gatewayv1.HTTPMethodPost)
)

func TestReadLimits(t *testing.T) {
	toys, assets := path(gatewayv1.PathMatchPathPrefix, "/toys"), path(gatewayv1.PathMatchPathPrefix, "/assets/")
	for name, c := range map[string]struct {
		text string
		want Limit
	}{
		"example 1, without the dash": {"rates: [{limit: 5, unit: second}]", Limit{Rates: []Rate{{5, 1, Second}}}},
		"example 2, toys": {`
rates:
- limit: 50
  duration: 1
  unit: minute
counters:
- auth.identity.username
triggers:
- matches:
  - path:
      type: PathPrefix
      value: "/toys"
when:
- selector: auth.identity.group
  operator: neq
  value: admin
`, Limit{
			Rates:    []Rate{{50, 1, Minute}},
			Counters: []string{"auth.identity.username"},
			When:     []Condition{{"auth.identity.group", NotEquals, "admin"}},
			Triggers: []Trigger{{Matches: []Match{match(gatewayv1.HTTPRouteMatch{Path: toys})}}},
		}},
		"example 2, assets": {`
rates:
- limit: 5
  duration: 1
  unit: minute
- limit: 100
  duration: 12
  unit: hour
triggers:
- matches:
  - path: {type: PathPrefix, value: "/assets/"}
`, Limit{
			Rates:    []Rate{{5, 1, Minute}, {100, 12, Hour}},
			Triggers: []Trigger{{Matches: []Match{match(gatewayv1.HTTPRouteMatch{Path: assets})}}},
		}},
		"example 3": {`
rates: [{limit: 150, unit: second}]
triggers: [{matches: [{path: {type: Exact, value: /toys/special}, method: GET}]}]
`, Limit{
			Rates: []Rate{{150, 1, Second}},
			Triggers: []Trigger{{Matches: []Match{
				match(gatewayv1.HTTPRouteMatch{Path: path(gatewayv1.PathMatchExact, "/toys/special"), Method: get}),
			}}},
		}},
		"example 5": {`
rates: [{limit: 50, duration: 1, unit: minute}]
counters: [auth.identity.username]
triggers:
- matches: [{path: {type: PathPrefix, value: /toys}, method: GET}, {path: {type: PathPrefix, value: /toys}, method: POST}]
- matches: [{path: {type: PathPrefix, value: /assets/}}]
`, Limit{
			Rates:    []Rate{{50, 1, Minute}},
			Counters: []string{"auth.identity.username"},
			Triggers: []Trigger{
				{Matches: []Match{
					match(gatewayv1.HTTPRouteMatch{Path: toys, Method: get}), match(gatewayv1.HTTPRouteMatch{Path: toys, Method: post}),
				}},
				{Matches: []Match{match(gatewayv1.HTTPRouteMatch{Path: assets})}},
			},
		}},
		"example 7": {`
rates: [{limit: 1000, unit: day}]
triggers: [{matches: [{path: {type: PathPrefix, value: /assets/}}], hostnames: [games.toystore.acme.com]}]
`, Limit{
			Rates:    []Rate{{1000, 1, Day}},
			Triggers: []Trigger{{Matches: []Match{match(gatewayv1.HTTPRouteMatch{Path: assets})}, Hostnames: []string{"games.toystore.acme.com"}}},
		}},
		"the mechanics": {`
rates: [{limit: 1, unit: second}]
counters: [auth.identity.username, context.request.http.path]
`, Limit{Rates: []Rate{{1, 1, Second}}, Counters: []string{"auth.identity.username", "context.request.http.path"}}},
		"defaults of Gateway API": {`
rates: [{limit: 1, unit: second}]
triggers:
- matches:
  - {}
  - path: {}
  - path: {value: /a}
  - path: {type: Exact}
  - path: {type: RegularExpression, value: "v[0-9]+"}
  - headers: [{name: x, value: a}]
  - queryParams: [{name: x, value: a}]
`, Limit{Rates: []Rate{{1, 1, Second}}, Triggers: []Trigger{{Matches: []Match{
			match(gatewayv1.HTTPRouteMatch{}),
			match(gatewayv1.HTTPRouteMatch{Path: path(gatewayv1.PathMatchPathPrefix, "/")}),
			match(gatewayv1.HTTPRouteMatch{Path: path(gatewayv1.PathMatchPathPrefix, "/a")}),
			match(gatewayv1.HTTPRouteMatch{Path: path(gatewayv1.PathMatchExact, "/")}),
			match(gatewayv1.HTTPRouteMatch{Path: path(gatewayv1.PathMatchRegularExpression, "v[0-9]+")}),
			match(gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{{Type: new(gatewayv1.HeaderMatchExact), Name: "x", Value: "a"}}}),
			match(gatewayv1.HTTPRouteMatch{QueryParams: []gatewayv1.HTTPQueryParamMatch{{Type: new(gatewayv1.QueryParamMatchExact), Name: "x", Value: "a"}}}),
		}}}}},
		"the first of two headers or parameters of one name": {`
rates: [{limit: 1, unit: second}]
triggers:
- matches:
  - headers: [{name: X-A, value: a}, {name: x-a, value: b}, {name: x-b, type: RegularExpression, value: "c+"}]
    queryParams: [{name: p, value: a, type: RegularExpression}, {name: p, value: b}, {name: P, value: c}]
`, Limit{Rates: []Rate{{1, 1, Second}}, Triggers: []Trigger{{Matches: []Match{match(gatewayv1.HTTPRouteMatch{
			Headers: []gatewayv1.HTTPHeaderMatch{
				{Type: new(gatewayv1.HeaderMatchExact), Name: "X-A", Value: "a"},
				{Type: new(gatewayv1.HeaderMatchRegularExpression), Name: "x-b", Value: "c+"},
			},
			QueryParams: []gatewayv1.HTTPQueryParamMatch{
				{Type: new(gatewayv1.QueryParamMatchRegularExpression), Name: "p", Value: "a"},
				{Type: new(gatewayv1.QueryParamMatchExact), Name: "P", Value: "c"},
			},
		})}}}}},
		"each operator": {`
rates: [{limit: 1, unit: second}]
when:
- {selector: auth.a, operator: eq, value: ""}
- {selector: auth.b, operator: neq, value: x}
- {selector: auth.c, operator: exists}
- {selector: auth.d, operator: nexists, value: null}
- {selector: auth.e, operator: matches, value: "^a+$"}
- {selector: auth.f, operator: incl, value: x}
- {selector: auth.g, operator: excl, value: x}
`, Limit{Rates: []Rate{{1, 1, Second}}, When: []Condition{
			{"auth.a", Equals, ""}, {"auth.b", NotEquals, "x"}, {"auth.c", Exists, ""}, {"auth.d", NotExists, ""},
			{"auth.e", MatchesRE, "^a+$"}, {"auth.f", Includes, "x"}, {"auth.g", NotInclude, "x"},
		}}},
		"hostnames in lower case": {`
rates: [{limit: 1, unit: second}]
triggers: [{hostnames: ["*.Acme.com", localhost]}]
`, Limit{Rates: []Rate{{1, 1, Second}}, Triggers: []Trigger{{Hostnames: []string{"*.acme.com", "localhost"}}}}},
		"nothing where nothing is needed": {`
rates: [{limit: 1, duration: null, unit: second}]
triggers: []
counters: null
when: []
`, Limit{Rates: []Rate{{1, 1, Second}}}},
		"the largest rates": {`
rates:
- {limit: 9223372036854775807, duration: 9223372036854775807, unit: second}
- {limit: 1, duration: 106751991167300, unit: day}
- {limit: 1.0e3, duration: 2.0, unit: hour}
`, Limit{Rates: []Rate{{9223372036854775807, 9223372036854775807, Second}, {1, 106751991167300, Day}, {1000, 2, Hour}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name = "a"
			got, errs := Read(at, "a", decoded(t, c.text))
			assert.Empty(t, errs)
			assert.Equal(t, &c.want, got)
		})
	}
}

func TestSecondsOfARate(t *testing.T) {
	assert.Equal(t, int64(43200), Rate{Duration: 12, Unit: Hour}.Seconds()) // example 2
	assert.Equal(t, int64(86400), Rate{Duration: 1, Unit: Day}.Seconds())   // example 7
	assert.Equal(t, int64(60), Rate{Duration: 1, Unit: Minute}.Seconds())
	assert.Equal(t, int64(9223372036854720000), Rate{Duration: 106751991167300, Unit: Day}.Seconds())
}

func TestIsRateLimit(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a rate with a unit":                         {"rates: [{limit: 5, unit: second}]", true},
		"a rate with a duration":                     {"rates: [{limit: 5, duration: 1}]", true},
		"triggers":                                   {"triggers: [{matches: []}]", true},
		"triggers that are null":                     {"triggers: null", true},
		"a condition with a selector":                {"when: [{predicate: a}, {selector: a}]", true},
		"a counter that is a string":                 {"counters: [auth.identity.username]", true},
		"a list of limits":                           {"[{rates: [{limit: 5, unit: second}]}]", true},
		"a limit of the later version":               {"{rates: [{limit: 5, window: 10s}], counters: [{expression: auth.identity.userid}], when: [{predicate: a}]}", false},
		"the rates alone of the later version":       {"{rates: [{limit: 5, window: 10s}]}", false},
		"nothing":                                    {"{}", false},
		"null":                                       {"null", false},
		"a text":                                     {"triggers", false},
		"a list of nothing":                          {"[{}]", false},
		"rates, conditions and counters of no shape": {"{rates: {unit: second}, when: [selector], counters: [1]}", false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, IsRateLimit(decoded(t, c.text))) })
	}
}
