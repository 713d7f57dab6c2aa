package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

func TestNearestOrder(t *testing.T) {
	const routes = `
  - matches:
    - {path: {value: /toys}, method: GET}
    - {path: {value: /toys}, method: POST}
  - matches:
    - {path: {type: Exact, value: /assets/logo}}
    - {path: {value: /orders}, headers: [{name: X-Version, value: v2}]}
`
	for name, c := range map[string]struct {
		match string
		want  NearMatch
	}{
		"a typo":                        {"{path: {value: /tosy}, method: POST}", NearMatch{0, 0, "POST PathPrefix /toys"}},
		"another method":                {"{path: {value: /toys}, method: PUT}", NearMatch{0, 0, "GET PathPrefix /toys"}},
		"another type":                  {"{path: {value: /assets/logo}}", NearMatch{0, 1, "Exact /assets/logo"}},
		"another case":                  {"{path: {type: Exact, value: /Assets/Logo}}", NearMatch{0, 1, "Exact /assets/logo"}},
		"a path below one":              {"{path: {type: Exact, value: /toys/special}, method: GET}", NearMatch{0, 0, "GET PathPrefix /toys"}},
		"another value of a header":     {"{headers: [{name: x-version, value: v3}]}", NearMatch{0, 1, "PathPrefix /orders with header X-Version=v2"}},
		"a path, and a header too many": {"{path: {value: /toys}, method: GET, headers: [{name: a, value: b}]}", NearMatch{0, 0, "GET PathPrefix /toys"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitsOf(t, "l", "[{matches: ["+c.match+"]}]")
			near := NearestOf([]*Route{routeOf(t, routes)}, &l[0].Triggers[0].Matches[0], 3)
			assert.Len(t, near, 3)
			assert.Equal(t, c.want, near[0])
		})
	}
}

// Of several routes the nearest matches come first; of equally near ones, those of the
// first route.
func TestNearestOf(t *testing.T) {
	long := "/" + strings.Repeat("a", 1000)
	services := NewRoute(newGatewayRoute(t, gateway.KindGRPCRoute, "[{matches: [{method: {service: toys}}]}]"))
	one := func(rules string) *Route { return routeOf(t, rules) }
	first := one("[{matches: [{path: {value: /b}}]}, {matches: [{path: {value: /toyland}}]}]")
	second := one("[{matches: [{path: {value: /c}}, {path: {value: /toys}}]}]")
	third := one("[{}, {matches: [{path: {value: /tosy}}, {path: {value: /b}}]}]")
	near := func(route, rule int, text string) NearMatch {
		return NearMatch{route, rule, "PathPrefix " + text}
	}
	for name, c := range map[string]struct {
		routes []*Route
		match  string
		most   int
		want   []NearMatch
	}{
		"the last one's":                    {[]*Route{first, third, second}, "{path: {value: /toyss}}", 1, []NearMatch{near(2, 0, "/toys")}},
		"those of each":                     {[]*Route{first, second, third}, "{path: {value: /tosyx}}", 2, []NearMatch{near(2, 1, "/tosy"), near(1, 0, "/toys")}},
		"one that states none comes last":   {[]*Route{services, first}, "{path: {value: /toyland}, method: GET}", 2, []NearMatch{near(1, 1, "/toyland"), near(1, 0, "/b")}},
		"what two have is the first's":      {[]*Route{third, first}, "{path: {value: /b}}", 1, []NearMatch{near(0, 1, "/b")}},
		"of those as near the first's":      {[]*Route{second, first}, "{path: {value: /d}}", 2, []NearMatch{near(0, 0, "/c"), near(1, 0, "/b")}},
		"fewer than were asked for":         {[]*Route{one("[{}]"), one("[{}]")}, "{path: {value: /d}}", 3, []NearMatch{near(0, 0, "/")}},
		"of services alone":                 {[]*Route{services}, "{method: GET}", 3, nil},
		"another value is nearer than none": {[]*Route{one("[{matches: [{path: {value: /b}}, {path: {value: /b}, method: PUT}]}]")}, "{path: {value: /b}, method: GET}", 1, []NearMatch{{0, 0, "PUT PathPrefix /b"}}},
		"a long path":                       {[]*Route{one("[{matches: [{path: {value: /b}}, {path: {value: " + long + "b}}]}]")}, "{path: {value: " + long + "}}", 1, []NearMatch{near(0, 0, long+"b")}},
		"of no routes":                      {nil, "{method: GET}", 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitsOf(t, "l", "[{matches: ["+c.match+"]}]")
			assert.Equal(t, c.want, NearestOf(c.routes, &l[0].Triggers[0].Matches[0], c.most))
		})
	}
}
