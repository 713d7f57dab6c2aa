package worlds_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
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

func TestTheSameSizeGivesTheSameObjects(t *testing.T) {
	size := worlds.Size{Gateways: 20, Routes: 200}
	first, second := slices.Collect(worlds.Objects(size)), slices.Collect(worlds.Objects(size))
	assert.Equal(t, first, second)
}

func TestTheBusyGatewayHasAsManyRoutesAsAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		size worlds.Size
		want int
	}{
		"half of them by default":      {worlds.Size{Gateways: 10, Routes: 100}, 50},
		"the given number":             {worlds.Size{Gateways: 10, Routes: 100, Busy: 7}, 7},
		"all, if more are requested":   {worlds.Size{Gateways: 10, Routes: 100, Busy: 700}, 100},
		"all, if it is the only one":   {worlds.Size{Gateways: 1, Routes: 100}, 100},
		"half of them of two gateways": {worlds.Size{Gateways: 2, Routes: 100}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, test.size.RoutesOf(worlds.Busy), test.want)
		})
	}
	small := 0
	for g := range 50 { // of the first, which have the most
		if len(worlds.Size{Gateways: 50, Routes: 500}.RoutesOf(g)) <= 20 {
			small++
		}
	}
	assert.Greater(t, small, 40)
}

// No policy of the mix is invalid or lacks its target, those of routes are
// effective on a path, and policies meet on paths.
func TestEveryPolicyTakesPart(t *testing.T) {
	c := worlds.Mix(t, worlds.Size{Gateways: 100, Routes: 1_000})
	v, ready := c.Store.View()
	require.True(t, ready)
	var outcomes effective.Outcomes
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

// Writes of benchmarks keep their targets and have the documented size: the webhook
// that does nothing is measured with reviews of about 6.5 KB.
func TestWrites(t *testing.T) {
	size := worlds.Size{Gateways: 100, Routes: 1_000}
	for name, test := range map[string]struct {
		write       worlds.Write
		ref         string
		least, most int
	}{
		"a route on the busy gateway":    {size.RouteWrite(7), "HTTPRoute team-007/route-00007", 6_000, 7_100},
		"a route on another gateway":     {size.RouteWrite(707), "HTTPRoute team-107/route-00707", 6_000, 7_100},
		"an AuthPolicy of a route":       {size.RoutePolicyWrite(8), "AuthPolicy team-008/policy-00008", 2_000, 4_000},
		"a RateLimitPolicy of a route":   {size.RoutePolicyWrite(9), "RateLimitPolicy team-009/policy-00009", 2_000, 4_000},
		"an AuthPolicy of a gateway":     {size.GatewayPolicyWrite(0), "AuthPolicy infra/policy-0000", 1_500, 4_000},
		"a RateLimitPolicy of a gateway": {size.GatewayPolicyWrite(1), "RateLimitPolicy infra/policy-0001", 1_500, 4_000},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.write
			assert.Equal(t, test.ref, w.Ref().String())
			assert.Equal(t, worlds.Meta(w.Before)["uid"], string(w.UID()))
			assert.NotEqual(t, w.Before["spec"], w.After["spec"])
			assert.Equal(t, worlds.Write{Before: w.After, After: w.Before}, w.Back())
			data := w.Review(t, "")
			assert.Greater(t, len(data), test.least)
			assert.Less(t, len(data), test.most)
		})
	}
}

func TestAUniformClusterIsAllAlike(t *testing.T) {
	for name, test := range map[string]struct {
		uniform                worlds.Uniform
		paths, policies, rules int
	}{
		"each route with a policy of its own": {worlds.Uniform{Routes: 20, OwnPolicy: true}, 20, 2, 3},
		"with a condition that all satisfy":   {worlds.Uniform{Routes: 20, OwnPolicy: true, When: true}, 20, 2, 3},
		"no route with a policy":              {worlds.Uniform{Routes: 20}, 20, 1, 1},
		"routes of three rules":               {worlds.Uniform{Routes: 20, Rules: 3}, 60, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.uniform.Cluster(t)
			c.Put(t, test.uniform.GatewayPolicy(7))
			v, _ := c.Store.View()
			paths := 0
			walk(t, v, func(e *effective.Effective) {
				paths++
				assert.Len(t, e.Layers, test.policies)
				assert.Len(t, e.Rules, test.rules)
				spec, err := json.Marshal(e.Spec())
				require.NoError(t, err)
				assert.Contains(t, string(spec), `"rates":[{"limit":50,"window":"17s"}]`, "the gateway's holds on each path")
			})
			assert.Equal(t, test.paths, paths)
		})
	}
}
