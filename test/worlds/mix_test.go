package worlds_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

func walk(t *testing.T, v *snapshot.View, visit func(*effective.Effective)) {
	t.Helper()
	budget := effective.NewBudget(t.Context(), 1<<60)
	require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, false, budget, func(e *effective.Effective) error {
		visit(e)
		return nil
	}))
}

// The maximum size of specs is that in docs/performance.md.
func TestTheFullSizeIsWhatTheLimitsAreAbout(t *testing.T) {
	count, seen := map[string]int{}, map[string]bool{}
	n := 0
	for o := range worlds.Objects(worlds.Full) {
		count[worlds.KindOf(o).Kind]++
		spec, err := json.Marshal(o["spec"])
		require.NoError(t, err)
		assert.LessOrEqual(t, len(spec), 1<<10, "%s", worlds.RefOf(o))
		seen[worlds.RefOf(o).String()], seen[worlds.Meta(o)["uid"].(string)] = true, true
		n++
	}
	assert.Len(t, seen, 2*n, "no two have the same name or uid")
	assert.InDelta(t, 5_500, count["AuthPolicy"], 1_100)
	count["policies"] = count["AuthPolicy"] + count["RateLimitPolicy"]
	delete(count, "AuthPolicy")
	delete(count, "RateLimitPolicy")
	assert.Equal(t, map[string]int{
		"GatewayClass": 1, "Namespace": 201, "Gateway": 1_000, "ListenerSet": 100, "HTTPRoute": 10_000, "policies": 11_000,
	}, count)
}

// No policy of the mix is invalid or lacks its target, those of routes are
// effective on a path, and policies meet on paths.
func TestEveryPolicyTakesPart(t *testing.T) {
	c := worlds.Mix(t, worlds.Size{Gateways: 100, Routes: 1_000})
	v, ready := c.Store.View()
	require.True(t, ready)
	var outcomes explain.Outcomes
	stacks := map[int]int{} // number of paths by the number of their policies
	walk(t, v, func(e *effective.Effective) {
		outcomes.Add(e)
		stacks[len(e.Layers)]++
	})
	states := map[api.State]int{}
	for _, k := range []*policykind.Kind{c.Auth, c.Limits} {
		for o := range v.Objects(k.Ref()) {
			p := o.(*policykind.Policy)
			got := outcomes.Of(v, p)
			states[got.State]++
			switch got.State {
			case api.Enforced, api.PartiallyEnforced, api.Overridden, api.Inactive:
			case api.NoPath:
				assert.Equal(t, "infra", p.Namespace, "only a gateway may have no route: %s", p.Ref())
			default:
				t.Errorf("%s is %s: %s", p.Ref(), got.State, got.Message)
			}
		}
	}
	for _, want := range []api.State{api.Enforced, api.PartiallyEnforced, api.Overridden} {
		assert.Positive(t, states[want], "%s among %v", want, states)
	}
	for n := 1; n <= 3; n++ {
		assert.Positive(t, stacks[n], "paths with %d policies among %v", n, stacks)
	}
}
