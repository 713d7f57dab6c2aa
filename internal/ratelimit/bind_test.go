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
func limitsOf(t *testing.T, all ...string) *Limits {
	t.Helper()
	var out []*Limit
	for i := 0; i < len(all); i += 2 {
		l, errs := Read(at, all[i], decoded(t, "rates: [{limit: 5, unit: second}]\ntriggers: "+all[i+1]))
		require.Empty(t, errs, all[i+1])
		out = append(out, l)
	}
	return NewLimits(out)
}

// matched returns the limits that match each rule, the bound one first.
func matched(b *Binding) [][]string {
	out := make([][]string, b.Route.Rules())
	for rule := range out {
		for _, i := range b.At(rule) {
			out[rule] = append(out[rule], b.Limits[i].Name)
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

func TestBind(t *testing.T) {
	none, first, second, both := [][]string{nil, nil}, [][]string{{"l"}, nil}, [][]string{nil, {"l"}}, [][]string{{"l"}, {"l"}}
	for name, c := range map[string]struct {
		rules, triggers string
		want            [][]string
	}{
		"example 1, no triggers: every rule":                     {toystore, "[]", both},
		"example 2, /toys without a method: GET and POST":        {toystore, "[{matches: [{path: {type: PathPrefix, value: /toys}}]}]", first},
		"example 2, /assets/":                                    {toystore, "[{matches: [{path: {type: PathPrefix, value: /assets/}}]}]", second},
		"example 3, GET /toys/special is no match of the route":  {toystore, "[{matches: [{path: {type: Exact, value: /toys/special}, method: GET}]}]", none},
		"example 4, GET /toys chooses the rule of GET and POST":  {toystore, "[{matches: [{path: {type: PathPrefix, value: /toys}, method: GET}]}]", first},
		"example 5, two triggers":                                {toystore, "[{matches: [{path: {value: /toys}, method: GET}, {path: {value: /toys}, method: POST}]}, {matches: [{path: {value: /assets/}}]}]", both},
		"a path without a type is a prefix":                      {toystore, "[{matches: [{path: {value: /toys}}]}]", first},
		"a prefix is not an exact path":                          {toystore, "[{matches: [{path: {type: Exact, value: /toys}}]}]", none},
		"a prefix is not one without its slash":                  {toystore, "[{matches: [{path: {value: /assets}}]}]", none},
		"the case of a path counts":                              {toystore, "[{matches: [{path: {value: /Toys}}]}]", none},
		"a longer path is another one":                           {toystore, "[{matches: [{path: {value: /toys/special}}]}]", none},
		"a shorter path is another one":                          {toystore, "[{matches: [{path: {value: /}}]}]", none},
		"a method alone chooses whatever has it":                 {toystore, "[{matches: [{method: POST}]}]", first},
		"a method that no match has":                             {toystore, "[{matches: [{method: PUT}]}]", none},
		"a method that the match does not state":                 {toystore, "[{matches: [{path: {value: /assets/}, method: GET}]}]", none},
		"one of two matches is enough":                           {toystore, "[{matches: [{method: PUT}, {path: {value: /assets/}}]}]", second},
		"a match that states nothing is equal to every one":      {toystore, "[{matches: [{}]}]", both},
		"a rule without matches is one for every path":           {"[{}, {matches: [{path: {value: /a}}]}]", "[{matches: [{path: {value: /}}]}]", first},
		"a match without a path is one for every path":           {"[{matches: [{method: GET}]}, {matches: [{path: {value: /a}}]}]", "[{matches: [{path: {type: PathPrefix, value: /}, method: GET}]}]", first},
		"a path that the route states in part":                   {"[{matches: [{path: {value: /a}}]}, {matches: [{path: {type: Exact}}]}]", "[{matches: [{path: {type: Exact, value: /}}]}]", second},
		"a header in another case":                               {"[{matches: [{headers: [{name: X-Canary, value: yes-please}]}]}, {}]", "[{matches: [{headers: [{name: x-canary, value: yes-please}]}]}]", first},
		"a header of another value":                              {"[{matches: [{headers: [{name: X-Canary, value: yes-please}]}]}, {}]", "[{matches: [{headers: [{name: X-Canary, value: no-thanks}]}]}]", none},
		"a header whose value has another case":                  {"[{matches: [{headers: [{name: X-Canary, value: yes-please}]}]}, {}]", "[{matches: [{headers: [{name: X-Canary, value: Yes-please}]}]}]", none},
		"a header whose type is stated as what it is by default": {"[{matches: [{headers: [{name: a, value: b}]}]}, {}]", "[{matches: [{headers: [{name: a, value: b, type: Exact}]}]}]", first},
		"a header of another type":                               {"[{matches: [{headers: [{name: a, value: b}]}]}, {}]", "[{matches: [{headers: [{name: a, value: b, type: RegularExpression}]}]}]", none},
		"one of two headers that the match has":                  {"[{matches: [{headers: [{name: a, value: b}, {name: c, value: d}]}]}, {}]", "[{matches: [{headers: [{name: c, value: d}]}]}]", first},
		"a header more than the match has":                       {"[{matches: [{headers: [{name: a, value: b}]}]}, {}]", "[{matches: [{headers: [{name: a, value: b}, {name: c, value: d}]}]}]", none},
		"headers of two matches of a rule are not one match":     {"[{matches: [{headers: [{name: a, value: b}]}, {headers: [{name: c, value: d}]}]}, {}]", "[{matches: [{headers: [{name: a, value: b}, {name: c, value: d}]}]}]", none},
		"of two headers of one name the first counts":            {"[{matches: [{headers: [{name: a, value: b}, {name: A, value: c}]}]}, {}]", "[{matches: [{headers: [{name: a, value: c}]}]}]", none},
		"a query parameter":                                      {"[{matches: [{queryParams: [{name: a, value: b}]}]}, {}]", "[{matches: [{queryParams: [{name: a, value: b}]}]}]", first},
		"a query parameter in another case is another one":       {"[{matches: [{queryParams: [{name: a, value: b}]}]}, {}]", "[{matches: [{queryParams: [{name: A, value: b}]}]}]", none},
		"a query parameter of another type":                      {"[{matches: [{queryParams: [{name: a, value: b}]}]}, {}]", "[{matches: [{queryParams: [{name: a, value: b, type: RegularExpression}]}]}]", none},
		"a query parameter is no header":                         {"[{matches: [{queryParams: [{name: a, value: b}]}]}, {}]", "[{matches: [{headers: [{name: a, value: b}]}]}]", none},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, matched(limitsOf(t, "l", c.triggers).Bind(routeOf(t, c.rules), anyHost)))
		})
	}
}

func TestBindHostnames(t *testing.T) {
	for name, c := range map[string]struct {
		hosts    []string
		triggers string
		want     [][]string
		outside  []string
		names    []string
	}{
		"example 7, a name of the route's wildcard":             {[]string{"*.toystore.acme.com"}, "[{matches: [{path: {value: /assets/}}], hostnames: [games.toystore.acme.com]}]", [][]string{nil, {"l"}}, nil, []string{"games.toystore.acme.com"}},
		"a name outside of it":                                  {[]string{"*.toystore.acme.com"}, "[{matches: [{path: {value: /assets/}}], hostnames: [games.acme.com]}]", [][]string{nil, nil}, []string{"games.acme.com"}, nil},
		"the wildcard's own suffix is none of its names":        {[]string{"*.toystore.acme.com"}, "[{hostnames: [toystore.acme.com]}]", [][]string{nil, nil}, []string{"toystore.acme.com"}, nil},
		"a wildcard takes any number of labels":                 {[]string{"*.acme.com"}, "[{hostnames: [a.b.acme.com]}]", [][]string{{"l"}, {"l"}}, nil, []string{"a.b.acme.com"}},
		"one of two inside is enough, the other is unreachable": {[]string{"a.acme.com", "b.acme.com"}, "[{matches: [{path: {value: /toys}}], hostnames: [b.acme.com, c.acme.com]}]", [][]string{{"l"}, nil}, []string{"c.acme.com"}, []string{"b.acme.com", "c.acme.com"}},
		"a path for any hostname has every one":                 {anyHost, "[{hostnames: [a.acme.com]}]", [][]string{{"l"}, {"l"}}, nil, []string{"a.acme.com"}},
		"hostnames are compared in lower case":                  {[]string{"a.acme.com"}, "[{hostnames: [A.Acme.com]}]", [][]string{{"l"}, {"l"}}, nil, []string{"a.acme.com"}},
		"of a trigger without any the route's":                  {[]string{"a.acme.com"}, "[{matches: [{path: {value: /toys}}]}]", [][]string{{"l"}, nil}, nil, nil},
		"hostnames do not let a match bind that is missing":     {[]string{"a.acme.com"}, "[{matches: [{path: {value: /tosy}}], hostnames: [a.acme.com]}]", [][]string{nil, nil}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := limitsOf(t, "l", c.triggers).Bind(routeOf(t, toystore), c.hosts)
			assert.Equal(t, c.want, matched(b))
			assert.Equal(t, c.outside, b.Limits[0].Triggers[0].UnreachableHostnames)
			var names []string
			for rule, all := range c.want {
				if len(all) > 0 {
					names = b.Limits[0].Hostnames(rule)
				}
			}
			assert.Equal(t, c.names, names)
		})
	}
}

func TestBoundHostnames(t *testing.T) {
	b := limitsOf(t, "l", `
  - {matches: [{path: {value: /toys}}], hostnames: [b.acme.com, a.acme.com]}
  - {matches: [{method: GET}], hostnames: [c.acme.com, a.acme.com]}
  - {matches: [{path: {value: /assets/}}], hostnames: [d.acme.com]}
  - {matches: [{path: {value: /assets/}}]}`).Bind(routeOf(t, toystore), []string{"*.acme.com"})
	assert.Equal(t, []string{"a.acme.com", "b.acme.com", "c.acme.com"}, b.Limits[0].Hostnames(0))
	assert.Nil(t, b.Limits[0].Hostnames(1), "one of the triggers is for all hostnames")
}

// A limit may not match a rule only because of the hostnames of its triggers, which is
// different from no trigger matching it.
func TestExcludingHostnames(t *testing.T) {
	toys := "{matches: [{path: {value: /toys}}], hostnames: [b.shop.com, a.shop.com]}"
	for name, c := range map[string]struct {
		triggers string
		kept     []string // from the first rule
		apart    bool     // from every rule
	}{
		"the trigger of the rule is for others":           {toys, []string{"a.shop.com", "b.shop.com"}, true},
		"several are":                                     {toys + ", {matches: [{method: GET}], hostnames: [c.shop.com, a.shop.com]}", []string{"a.shop.com", "b.shop.com", "c.shop.com"}, true},
		"hostnames alone are a trigger, too":              {"{hostnames: [a.shop.com]}", []string{"a.shop.com"}, true},
		"another trigger chooses the rule":                {toys + ", {matches: [{method: GET}]}", nil, false},
		"another trigger chooses another rule":            {toys + ", {matches: [{path: {value: /assets/}}]}", []string{"a.shop.com", "b.shop.com"}, false},
		"it is another rule that they keep it from":       {"{matches: [{path: {value: /assets/}}], hostnames: [a.shop.com]}", nil, true},
		"the match is none of any rule":                   {"{matches: [{path: {value: /tosy}}], hostnames: [a.shop.com]}", nil, false},
		"one of the hostnames is one of the route's":      {"{matches: [{path: {value: /toys}}], hostnames: [a.shop.com, x.acme.com]}", nil, false},
		"no trigger has hostnames, and none has a match":  {"{matches: [{path: {value: /tosy}}]}", nil, false},
		"it has no triggers, and is bound whatever comes": {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			triggers := c.triggers
			if triggers != "" {
				triggers = "[" + triggers + "]"
			}
			b := limitsOf(t, "l", triggers).Bind(routeOf(t, toystore), []string{"*.acme.com"})
			assert.Equal(t, c.kept, b.Limits[0].ExcludingHostnames(0))
			assert.Equal(t, c.apart, b.Limits[0].ExcludedByHostnames())
		})
	}
}

func TestFirstMatchingLimitIsBound(t *testing.T) {
	b := limitsOf(t,
		"assets", "[{matches: [{path: {value: /assets/}}]}]",
		"readToys", "[{matches: [{path: {value: /toys}, method: GET}]}]",
		"rest", "[]",
		"toysOrAssets", "[{matches: [{path: {value: /toys}, method: POST}]}, {matches: [{path: {value: /assets/}}]}]",
		"unmatched", "[{matches: [{path: {value: /tosy}}]}]",
	).Bind(routeOf(t, toystore+"  - matches: [{path: {value: /other}}]\n"), anyHost)
	assert.Equal(t, [][]string{{"readToys", "rest", "toysOrAssets"}, {"assets", "rest", "toysOrAssets"}, {"rest"}}, matched(b))
	assert.Equal(t, []int{1, 0, 2}, []int{b.First(0), b.First(1), b.First(2)})
	var somewhere []bool
	for i := range b.Limits {
		somewhere = append(somewhere, b.Limits[i].MatchesAny())
	}
	assert.Equal(t, []bool{true, true, true, true, false}, somewhere)
}

func TestNoMatchingLimit(t *testing.T) {
	b := limitsOf(t, "l", "[{matches: [{path: {value: /tosy}}]}]").Bind(routeOf(t, toystore), anyHost)
	assert.Equal(t, -1, b.First(0))
}

func TestBoundMatches(t *testing.T) {
	for name, c := range map[string]struct {
		triggers        string
		by, alsoMatches []string // of the first rule
	}{
		"no triggers":            {"[]", nil, nil},
		"one of two matches":     {"[{matches: [{method: GET}]}]", []string{"GET PathPrefix /toys"}, []string{"POST PathPrefix /toys"}},
		"both, by one":           {"[{matches: [{path: {value: /toys}}]}]", []string{"GET PathPrefix /toys", "POST PathPrefix /toys"}, nil},
		"both, by two triggers":  {"[{matches: [{method: POST}]}, {matches: [{method: GET}]}]", []string{"GET PathPrefix /toys", "POST PathPrefix /toys"}, nil},
		"both, by hostnames":     {"[{hostnames: [a.acme.com]}]", []string{"GET PathPrefix /toys", "POST PathPrefix /toys"}, nil},
		"another rule's matches": {"[{matches: [{path: {value: /assets/}}]}]", nil, nil},
		"one, for hostnames that are outside, and one for all": {"[{matches: [{method: GET}], hostnames: [a.shop.com]}, {matches: [{method: POST}]}]", []string{"POST PathPrefix /toys"}, []string{"GET PathPrefix /toys"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := limitsOf(t, "l", c.triggers).Bind(routeOf(t, toystore), []string{"*.acme.com"})
			assert.Equal(t, c.by, b.Limits[0].By(0))
			assert.Equal(t, c.alsoMatches, b.Limits[0].AlsoMatches(0))
		})
	}
}

func TestTriggerMatchFound(t *testing.T) {
	b := limitsOf(t, "l", `
  - {matches: [{path: {value: /tosy}}, {path: {value: /toys}}]}
  - {matches: [{path: {value: /assets/}}], hostnames: [a.shop.com]}`).Bind(routeOf(t, toystore), []string{"*.acme.com"})
	var found [][]bool
	for _, c := range b.Limits[0].Triggers {
		found = append(found, c.Found)
	}
	assert.Equal(t, [][]bool{{false, true}, {true}}, found, "found does not depend on hostnames")
	assert.Equal(t, [][]string{{"l"}, nil}, matched(b))
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
			assert.Equal(t, c.want, matched(limitsOf(t, "l", c.triggers).Bind(r, anyHost)))
		})
	}
}

func TestJoin(t *testing.T) {
	plain, triggered := limitsOf(t, "a", "[]"), limitsOf(t, "b", "[{matches: [{path: {value: /toys}}]}]")
	assert.False(t, plain.Triggered())
	assert.False(t, Join([]*Limits{plain, plain}).Triggered())
	all := Join([]*Limits{triggered, plain})
	require.True(t, all.Triggered())
	assert.Equal(t, [][]string{{"b", "a"}, {"a"}}, matched(all.Bind(routeOf(t, toystore), anyHost)))
}
