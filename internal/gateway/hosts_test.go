package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

// through is a path of a route with hostnames behind a listener with one; the
// names are YAML.
func through(t testing.TB, listener, route string) gateway.Path {
	t.Helper()
	p := gateway.Path{Rule: -1, Listener: &gateway.Listener{Name: "http", Hostname: listener}}
	if route != "" {
		p.Route = routing(t, "app", "{hostnames: "+route+"}")
	}
	return p
}

// The hostnames of two paths intersect if one name may reach both.
func TestShareHosts(t *testing.T) {
	tests := map[string]struct {
		listener, route           string
		otherListener, otherRoute string
		want                      bool
	}{
		"any and any":                                            {"", "", "", "", true},
		"any and one":                                            {"", "", "x.example", "", true},
		"two listeners with one name":                            {"x.example", "", "x.example", "", true},
		"two listeners with two names":                           {"x.example", "", "y.example", "", false},
		"a wildcard and a name under it":                         {"*.example", "", "x.example", "", true},
		"a wildcard and a name far under it":                     {"*.example", "", "a.b.example", "", true},
		"a wildcard and the name itself":                         {"*.example", "", "example", "", false},
		"a wildcard and a name that ends like it":                {"*.example", "", "myexample", "", false},
		"two wildcards, one under the other":                     {"*.example", "", "*.x.example", "", true},
		"two wildcards side by side":                             {"*.a.example", "", "*.b.example", "", false},
		"routes with one name of two":                            {"", "[x.example, y.example]", "", "[y.example, z.example]", true},
		"routes with two names":                                  {"", "[x.example]", "", "[y.example]", false},
		"a route takes of its listener what it names":            {"*.example", "[x.example]", "*.example", "[y.example]", false},
		"a route with a wildcard behind a name":                  {"x.example", "['*.example']", "y.example", "['*.example']", false},
		"a route with a wildcard behind the very name":           {"x.example", "['*.example']", "x.example", "['*.example']", true},
		"a route with a wildcard and one with a name":            {"", "['*.example']", "", "[x.example]", true},
		"a name that the listener does not have is none":         {"*.example", "[x.example, y.other]", "", "[y.other]", false},
		"a narrower wildcard of the route":                       {"*.example", "['*.x.example']", "y.example", "", false},
		"a narrower wildcard of the route, a name under it":      {"*.example", "['*.x.example']", "a.x.example", "", true},
		"a wider wildcard of the route than its listener's":      {"*.x.example", "['*.example']", "y.example", "", false},
		"a route that its listener shares no name with":          {"x.example", "[y.example]", "", "", false},
		"a route without names has its listener's":               {"x.example", "[]", "x.example", "[x.example]", true},
		"a route without names has no other than its listener's": {"x.example", "[]", "", "[y.example]", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, q := through(t, test.listener, test.route), through(t, test.otherListener, test.otherRoute)
			assert.Equal(t, test.want, gateway.ShareHosts(p, q))
			assert.Equal(t, test.want, gateway.ShareHosts(q, p), "the other way round")
		})
	}
	t.Run("a path without a listener takes any", func(t *testing.T) {
		mesh := gateway.Path{Rule: -1, Service: &gateway.Service{Namespace: "app", Name: "s"}}
		assert.True(t, gateway.ShareHosts(mesh, through(t, "x.example", "")))
		mesh.Route = routing(t, "app", "{hostnames: [y.example]}")
		assert.False(t, gateway.ShareHosts(mesh, through(t, "x.example", "")))
	})
}

// A path is covered by others if whatever reaches it reaches one of them.
func TestCoveredBy(t *testing.T) {
	tests := map[string]struct {
		listener, route string
		others          []string // hostnames of listeners
		want            bool
	}{
		"any by any":                           {"", "", []string{""}, true},
		"any by all that there seem to be":     {"", "", []string{"*.example", "*.com"}, false},
		"a name by itself":                     {"x.example", "", []string{"x.example"}, true},
		"a name by a wildcard":                 {"x.example", "", []string{"*.example"}, true},
		"a wildcard by a name":                 {"*.example", "", []string{"x.example"}, false},
		"a wildcard by itself":                 {"*.example", "", []string{"*.example"}, true},
		"a wildcard by a wider one":            {"*.x.example", "", []string{"*.example"}, true},
		"a wildcard by a narrower one":         {"*.example", "", []string{"*.x.example"}, false},
		"two names by two others":              {"", "[x.example, y.example]", []string{"x.example", "y.example"}, true},
		"two names by one of them":             {"", "[x.example, y.example]", []string{"x.example"}, false},
		"a name by nothing":                    {"x.example", "", nil, false},
		"a wildcard by what only ends like it": {"*.example", "", []string{"*.myexample"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var others []gateway.Path
			for _, o := range test.others {
				others = append(others, through(t, o, ""))
			}
			assert.Equal(t, test.want, through(t, test.listener, test.route).CoveredBy(others))
		})
	}
}

// A rule takes requests of another one by a match which that one had.
func TestMatchesThatMove(t *testing.T) {
	const a, b, other = "{path: {value: /a}}", "{path: {value: /b}}", "{matches: [{path: {value: /other}}]}"
	tests := map[string]struct {
		before, after string // the rules of a route
		gives, takes  bool   // the first rule to the second
	}{
		"nothing moves":           {"[{matches: [" + a + "]}, " + other + "]", "[{matches: [" + a + "]}, " + other + "]", false, false},
		"one of two moves":        {"[{name: x, matches: [" + a + ", " + b + "]}, {name: z, matches: [{path: {value: /other}}]}]", "[{name: x, matches: [" + a + "]}, {name: z, matches: [{path: {value: /other}}, " + b + "]}]", true, true},
		"one is given up":         {"[{name: x, matches: [" + a + ", " + b + "]}, {name: z}]", "[{name: x, matches: [" + a + "]}, {name: z}]", true, false},
		"names are swapped":       {"[{name: x, matches: [" + a + "]}, {name: z, matches: [" + b + "]}]", "[{name: x, matches: [" + b + "]}, {name: z, matches: [" + a + "]}]", true, true},
		"both have it, as before": {"[{name: x, matches: [" + a + "]}, {name: z, matches: [" + a + "]}]", "[{name: x, matches: [" + a + "]}, {name: z, matches: [" + a + "]}]", false, false},
		"a default is written out, and a match more": {
			"[{name: x, matches: [" + a + "]}, {name: z}]", "[{name: x, matches: [{path: {type: PathPrefix, value: /a}}, " + b + "]}, {name: z}]", false, false,
		},
		"another type of match is another one": {
			"[{name: x, matches: [" + a + "]}, {name: z}]", "[{name: x, matches: [{path: {type: Exact, value: /a}}]}, {name: z, matches: [" + a + "]}]", true, true,
		},
		"a header more is another one": {
			"[{name: x, matches: [" + a + "]}, {name: z}]", "[{name: x, matches: [{path: {value: /a}, headers: [{name: h, value: v}]}]}, {name: z}]", true, false,
		},
		"no matches is the one for all": {"[{name: x}, {name: z, matches: [" + a + "]}]", "[{name: x, matches: [" + b + "]}, {name: z, matches: [{path: {type: PathPrefix, value: /}}]}]", true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := ruled(t, test.before), ruled(t, test.after)
			assert.Equal(t, test.gives, gateway.GivesMatches(before, 0, after, 0))
			assert.Equal(t, test.takes, gateway.TakesFrom(before, 0, after, 1))
		})
	}
}
