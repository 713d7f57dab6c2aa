package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/gateway"
)

// routeOf is an HTTPRoute of rules in YAML.
func routeOf(t *testing.T, rules string) *Route {
	return NewRoute(newGatewayRoute(t, gateway.KindHTTPRoute, rules))
}

func newGatewayRoute(t *testing.T, kind, rules string) *gateway.Route {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("metadata: {namespace: app, name: toystore}\nspec:\n  rules: " + rules))
	require.NoError(t, err)
	r, err := gateway.ReadRoute(kind, data, nil, gateway.Newest)
	require.NoError(t, err)
	return r
}

// limitsOf reads limits: a name, and then its triggers in YAML.
func limitsOf(t *testing.T, all ...string) []*Limit {
	t.Helper()
	var out []*Limit
	for i := 0; i < len(all); i += 2 {
		l, errs := read(at, all[i], decoded(t, "rates: [{limit: 5, unit: second}]\ntriggers: "+all[i+1]))
		require.Empty(t, errs, all[i+1])
		out = append(out, l)
	}
	return out
}

// matched returns the limits that match each rule, the bound one first.
func matched(b Binding) [][]string {
	out := make([][]string, b[0].Route.Rules())
	for rule := range out {
		for _, i := range b.At(rule) {
			out[rule] = append(out[rule], b[i].Name)
		}
	}
	return out
}

// toystore is the route of the RFC.
const toystore = `
  - matches:
    - {path: {type: PathPrefix, value: /toys}, method: GET}
    - {path: {type: PathPrefix, value: /toys}, method: POST}
  - matches:
    - path: {type: PathPrefix, value: /assets/}
`

// anyHost are the hosts of a path without hostnames.
var anyHost = []string{""}

// The random worlds hold how fields are compared; these are examples of the RFC, and values
// that those do not have.
func TestBind(t *testing.T) {
	none, first, second := [][]string{nil, nil}, [][]string{{"l"}, nil}, [][]string{nil, {"l"}}
	for name, c := range map[string]struct {
		rules, triggers string
		want            [][]string
	}{
		"example 2, /toys without a method: GET and POST":       {toystore, "[{matches: [{path: {type: PathPrefix, value: /toys}}]}]", first},
		"example 2, /assets/":                                   {toystore, "[{matches: [{path: {type: PathPrefix, value: /assets/}}]}]", second},
		"example 3, GET /toys/special is no match of the route": {toystore, "[{matches: [{path: {type: Exact, value: /toys/special}, method: GET}]}]", none},
		"example 4, GET /toys chooses the rule of GET and POST": {toystore, "[{matches: [{path: {type: PathPrefix, value: /toys}, method: GET}]}]", first},
		"a prefix is not one without its slash":                 {toystore, "[{matches: [{path: {value: /assets}}]}]", none},
		"the case of a path counts":                             {toystore, "[{matches: [{path: {value: /Toys}}]}]", none},
		"a rule without matches is one for every path":          {"[{}, {matches: [{path: {value: /a}}]}]", "[{matches: [{path: {value: /}}]}]", first},
		"a header whose value has another case":                 {"[{matches: [{headers: [{name: X-Canary, value: yes-please}]}]}, {}]", "[{matches: [{headers: [{name: X-Canary, value: Yes-please}]}]}]", none},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, matched(Bind(limitsOf(t, "l", c.triggers), routeOf(t, c.rules), anyHost)))
		})
	}
}

// Their rules have no such matches.
func TestMatchesDoNotBindToGRPCRoute(t *testing.T) {
	r := NewRoute(newGatewayRoute(t, gateway.KindGRPCRoute, "[{matches: [{method: {service: toys, method: get}}]}, {}]"))
	for name, c := range map[string]struct {
		triggers string
		want     [][]string
	}{
		"no triggers": {"[]", [][]string{{"l"}, {"l"}}},
		"a path":      {"[{matches: [{path: {value: /}}]}]", [][]string{nil, nil}},
		"a method":    {"[{matches: [{method: GET}]}]", [][]string{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, matched(Bind(limitsOf(t, "l", c.triggers), r, anyHost)))
		})
	}
}
