package effective_test

import (
	"context"
	"fmt"
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

// countByWalk visits every path of every kind, and counts their states.
func countByWalk(t testing.TB, engine *effective.Engine, v *snapshot.View) effective.StateCounts {
	t.Helper()
	out := make(effective.StateCounts)
	for _, k := range v.Kinds() {
		out[k.Ref()] = effective.States{}
	}
	require.NoError(t, engine.Walk(v, effective.Scope{All: true}, true, unlimited(), func(e *effective.Effective) error {
		n := out[e.Kind.Ref()]
		switch e.State() {
		case api.Enforced:
			n.Enforced++
		case api.PartiallyEnforced:
			n.PartiallyEnforced++
		case api.Inactive:
			n.Inactive++
		case "":
			n.None++
		default:
			require.Fail(t, "no state of a path", e.State())
		}
		out[e.Kind.Ref()] = n
		return nil
	}))
	return out
}

// almostAlike are kinds that differ in one property that decides which paths they have.
var almostAlike = docs(
	worlds.ProfileDoc("Long", "levels: [Gateway, Route, Backend]"),
	worlds.ProfileDoc("Short", "levels: [Gateway, Route, Backend]\nshortPaths: true"),
)

func TestCountStatesMatchesWalkInRandomWorlds(t *testing.T) {
	builtin := policykind.BuiltinKinds()
	others := slices.DeleteFunc(slices.Concat(world(t, almostAlike).Kinds(), builtin), func(k *policykind.Kind) bool {
		return k.Kind == "Paint" || k.Kind == "Label" // these are in every world
	})
	engine := effective.NewEngine()
	var sum effective.States
	for seed := range uint64(300) {
		d := newDice(seed)
		w := newRandomWorld(t, d)
		if seed%2 == 0 { // many kinds without a policy, some with the same paths
			w.View = w.WithKinds(slices.Concat(w.Kinds(), others))
		}
		for range 3 {
			got, err := engine.CountStates(w.View, unlimited())
			require.NoError(t, err)
			require.Equal(t, countByWalk(t, effective.NewEngine(), w.View), got, "seed %d\n%s", seed, w)
			for _, n := range got {
				sum.Enforced, sum.PartiallyEnforced, sum.None = sum.Enforced+n.Enforced, sum.PartiallyEnforced+n.PartiallyEnforced, sum.None+n.None
			}
			for ref := range w.texts { // until the last policy of a kind is gone, at times
				if d.in(2) && slices.Contains(randomKinds, ref.Kind) {
					w.remove(ref)
				}
			}
		}
	}
	assert.Positive(t, sum.Enforced)
	assert.Positive(t, sum.PartiallyEnforced)
	assert.Positive(t, sum.None)
}

func TestCountStatesAllStates(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{name: one}, {name: two}, {name: three}, {name: none}]", "g"),
		policyDoc("Paint", "app", "x", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: one}]\noverrides: {strategy: patch, a: 1}"),
		policyDoc("Paint", "app", "x2", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: one}]\na: 2\nb: 2"),
		policyDoc("Paint", "app", "y", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: two}]\na: 1"),
		policyDoc("Paint", "app", "z", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: three}]\noverrides: {strategy: patch, when: 'false', a: 1}")))
	got, err := effective.NewEngine().CountStates(v, unlimited())
	require.NoError(t, err)
	assert.Equal(t, effective.StateCounts{
		{Group: worlds.Group, Kind: "Paint"}: {Enforced: 1, PartiallyEnforced: 1, Inactive: 1, None: 1},
		{Group: worlds.Group, Kind: "Label"}: {None: 4},
	}, got)
}

func TestCountStatesOfEmptyView(t *testing.T) {
	v := world(t, gatewayDoc("g", "istio", "http"))
	got, err := effective.NewEngine().CountStates(v, unlimited())
	require.NoError(t, err)
	assert.Equal(t, effective.StateCounts{{Group: worlds.Group, Kind: "Paint"}: {}, {Group: worlds.Group, Kind: "Label"}: {}}, got)
}

func TestCountStatesStopsAtBudget(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), higher("top", "overrides: {strategy: patch, when: 'spec.b > 0', a: 1}")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := effective.NewEngine().CountStates(v, effective.NewBudget(ctx, 1_000_000))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, effective.ErrTooMuch)
}

// Visiting the paths of each kind would allocate for each.
func TestKindsWithoutPoliciesAreNotVisited(t *testing.T) {
	builtin := policykind.BuiltinKinds()
	builtin = slices.DeleteFunc(builtin, func(k *policykind.Kind) bool { return len(k.Controls()) > 0 }) // states of their own
	var text []string
	text = append(text, gatewayDoc("g", "istio", "http"))
	for i := range 200 {
		text = append(text, routeDoc(fmt.Sprintf("r%d", i), "[{},{},{}]", "g"))
	}
	engine := effective.NewEngine()
	allocations := func(kinds []*policykind.Kind) float64 {
		v := world(t, docs(text...)).WithKinds(kinds)
		return testing.AllocsPerRun(5, func() {
			_, err := engine.CountStates(v, unlimited())
			require.NoError(t, err)
		})
	}
	assert.Less(t, allocations(builtin), allocations(builtin[:1])+10*float64(len(builtin)), "of most kinds there are 600 paths")
}
