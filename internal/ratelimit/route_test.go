package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

func TestMatchText(t *testing.T) {
	for name, c := range map[string]struct{ match, want string }{
		"a path":                {"{path: {type: Exact, value: /toys}}", "Exact /toys"},
		"a path by default":     {"{path: {}}", "PathPrefix /"},
		"a method and a path":   {"{path: {value: /toys}, method: GET}", "GET PathPrefix /toys"},
		"an expression":         {"{path: {type: RegularExpression, value: /toys/.}}", "RegularExpression /toys/."},
		"a header":              {"{path: {}, headers: [{name: X-Canary, value: yes-please}]}", "PathPrefix / with header X-Canary=yes-please"},
		"a header's expression": {"{path: {}, headers: [{name: a, value: b, type: RegularExpression}]}", "PathPrefix / with header a~b"},
		"a header and a query parameter": {
			"{path: {}, method: PUT, headers: [{name: a, value: b}], queryParams: [{name: c, value: d, type: RegularExpression}]}",
			"PUT PathPrefix / with header a=b and query parameter c~d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{c.want}, routeOf(t, "[{matches: ["+c.match+"]}]").Texts(0))
			l := limitsOf(t, "l", "[{matches: ["+c.match+"]}]")
			assert.Equal(t, c.want, l[0].Triggers[0].Matches[0].String())
		})
	}
}

func TestMatchString(t *testing.T) {
	for match, want := range map[string]string{
		"{}":                                   "any request",
		"{method: GET}":                        "GET",
		"{headers: [{name: a, value: b}]}":     "any request with header a=b",
		"{queryParams: [{name: a, value: b}]}": "any request with query parameter a=b",
	} {
		l := limitsOf(t, "l", "[{matches: ["+match+"]}]")
		assert.Equal(t, want, l[0].Triggers[0].Matches[0].String())
	}
}

func TestRouteWithoutRules(t *testing.T) {
	b := Bind(limitsOf(t, "l", "[{matches: [{path: {value: /}}]}]"), NewRoute(&gateway.Route{Kind: gateway.KindHTTPRoute}), anyHost)
	assert.False(t, b[0].MatchesAny())
	assert.Equal(t, []bool{false}, b[0].Triggers[0].Found)
}
