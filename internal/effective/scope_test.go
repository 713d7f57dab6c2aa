package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

func TestScopeOf(t *testing.T) {
	v := world(t, twoGateways())
	moved := read(t, v, policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r9}]\na: 1"))
	assert.Equal(t, effective.Scope{}, effective.ScopeOf())
	assert.Equal(t, objectScope(routeRef("r1")), effective.ScopeOf(v.Get(routeRef("r1")), nil))
	before, after := v.Get(paintRef("app", "p")).(*policykind.Policy), moved.(*policykind.Policy)
	assert.Equal(t, effective.Scope{Policies: []*policykind.Policy{before, after}}, effective.ScopeOf(before, after),
		"both the old and the new targets are looked at")
	assert.Equal(t, effective.Scope{}, effective.ScopeOf(&policykind.Profile{}), "a profile takes no part in a view")
}
