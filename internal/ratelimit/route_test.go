package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

func TestMatchText(t *testing.T) {
	for name, c := range tables.Read[map[string]struct{ Match, Want string }](t, "testdata/tables/match-texts.yaml") {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{c.Want}, routeOf(t, "[{matches: ["+c.Match+"]}]").Texts(0))
			l := limitsOf(t, "l", "[{matches: ["+c.Match+"]}]")
			assert.Equal(t, c.Want, l[0].Triggers[0].Matches[0].String())
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
