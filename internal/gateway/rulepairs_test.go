package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// ruled is an HTTPRoute app/r with rules.
func ruled(t testing.TB, rules string) *gateway.Route {
	return routing(t, "app", "{rules: "+rules+"}")
}

// MatchRules pairs rules before and after an update.
func TestMatchRules(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Before, After string
		Want          []int
	}](t, "testdata/tables/match-rules.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.Want, gateway.MatchRules(ruled(t, test.Before), ruled(t, test.After)))
		})
	}
}

// A backend of weight 0 receives no requests.
func TestServes(t *testing.T) {
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

// A rule takes requests from another one by a match that that one had.
func TestTakesFrom(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Before, After string // the rules of a route
		Takes         bool   // the second from the first
	}](t, "testdata/tables/takes-from.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := ruled(t, test.Before), ruled(t, test.After)
			assert.Equal(t, test.Takes, gateway.TakesFrom(before, 0, after, 1))
		})
	}
}
