package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

// through is a path of a route with hostnames on a listener with a hostname; the
// names are YAML.
func through(t testing.TB, listener, route string) gateway.Path {
	t.Helper()
	p := gateway.Path{Rule: -1, Listener: &gateway.Listener{Name: "http", Hostname: listener}}
	if route != "" {
		p.Route = routing(t, "app", "{hostnames: "+route+"}")
	}
	return p
}

// Two paths share hosts if requests for one name can reach both.
func TestShareHosts(t *testing.T) {
	tests := map[string]struct {
		listener, route           string
		otherListener, otherRoute string
		want                      bool
	}{
		"any and any":                                       {"", "", "", "", true},
		"any and one":                                       {"", "", "x.example", "", true},
		"two listeners with one name":                       {"x.example", "", "x.example", "", true},
		"two listeners with two names":                      {"x.example", "", "y.example", "", false},
		"a wildcard and a name under it":                    {"*.example", "", "x.example", "", true},
		"a wildcard and a name far under it":                {"*.example", "", "a.b.example", "", true},
		"a wildcard and the name itself":                    {"*.example", "", "example", "", false},
		"a wildcard and a name that ends like it":           {"*.example", "", "myexample", "", false},
		"two wildcards, one under the other":                {"*.example", "", "*.x.example", "", true},
		"two wildcards side by side":                        {"*.a.example", "", "*.b.example", "", false},
		"routes with one name of two":                       {"", "[x.example, y.example]", "", "[y.example, z.example]", true},
		"routes with two names":                             {"", "[x.example]", "", "[y.example]", false},
		"a route has the intersection with its listener":    {"*.example", "[x.example]", "*.example", "[y.example]", false},
		"a route with a wildcard behind a name":             {"x.example", "['*.example']", "y.example", "['*.example']", false},
		"a route with a wildcard behind the very name":      {"x.example", "['*.example']", "x.example", "['*.example']", true},
		"a route with a wildcard and one with a name":       {"", "['*.example']", "", "[x.example]", true},
		"a name that the listener does not have is none":    {"*.example", "[x.example, y.other]", "", "[y.other]", false},
		"a narrower wildcard of the route":                  {"*.example", "['*.x.example']", "y.example", "", false},
		"a narrower wildcard of the route, a name under it": {"*.example", "['*.x.example']", "a.x.example", "", true},
		"a wider wildcard of the route than its listener's": {"*.x.example", "['*.example']", "y.example", "", false},
		"a route that its listener shares no name with":     {"x.example", "[y.example]", "", "", false},
		"a name under its listener's, which is no wildcard": {"x.example", "[x.example, y.x.example]", "y.x.example", "", false},
		"a route without hostnames has its listener's":      {"x.example", "[]", "x.example", "[x.example]", true},
		"a route without hostnames has only its listener's": {"x.example", "[]", "", "[y.example]", false},
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

// A path is covered by others if each hostname that reaches it reaches one of them.
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

// SEMANTICS section 7: hostnames that intersect.
func TestHostnames(t *testing.T) {
	tests := map[string]struct {
		listener, route string
		want            bool
	}{
		"neither has one":                             {"", "[]", true},
		"the listener has none":                       {"", "[a.example.com]", true},
		"the route has none":                          {"a.example.com", "[]", true},
		"the same":                                    {"a.example.com", "[a.example.com]", true},
		"others":                                      {"a.example.com", "[b.example.com]", false},
		"case is no difference":                       {"A.Example.com", "[a.eXample.COM]", true},
		"one of several":                              {"a.example.com", "[x.org, a.example.com]", true},
		"a listener's wildcard matches a label":       {"'*.example.com'", "[a.example.com]", true},
		"and any number of labels":                    {"'*.example.com'", "[c.b.a.example.com]", true},
		"but never the name itself":                   {"'*.example.com'", "[example.com]", false},
		"nor one that only ends alike":                {"'*.example.com'", "[anexample.com]", false},
		"a wildcard of the route matches a label":     {"a.example.com", "['*.example.com']", true},
		"and any number of labels, too":               {"c.b.a.example.com", "['*.example.com']", true},
		"but never the listener's name itself":        {"example.com", "['*.example.com']", false},
		"the same wildcards":                          {"'*.example.com'", "['*.example.com']", true},
		"a wildcard inside the listener's":            {"'*.example.com'", "['*.a.example.com']", true},
		"a wildcard around the listener's":            {"'*.a.example.com'", "['*.example.com']", true},
		"wildcards beside each other":                 {"'*.a.example.com'", "['*.b.example.com']", false},
		"wildcards that only end alike":               {"'*.example.com'", "['*.anexample.com']", false},
		"wildcards of different case":                 {"'*.EXAMPLE.com'", "['*.a.example.COM']", true},
		"a wildcard does not match the parent domain": {"'*.a.example.com'", "[example.com]", false},
		"none of several":                             {"'*.example.com'", "[example.com, x.org]", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host := ""
			if test.listener != "" {
				host = ", hostname: " + test.listener
			}
			g := listening(t, "{name: l, port: 80, protocol: HTTP"+host+", "+allowAll+"}")
			r := routing(t, "app", "{parentRefs: [{namespace: infra, name: edge}], hostnames: "+test.route+"}")
			assert.Equal(t, test.want, len(attached(gateway.OwnListeners(g), r, nil)) == 1)
		})
	}
}
