package effective_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/worlds"
)

// stopped walks all paths until the budget is exceeded, and returns the error.
func stopped(t *testing.T, b *effective.Budget, docs ...string) *effective.TooMuchError {
	t.Helper()
	v := world(t, worlds.Docs(docs...))
	err := effective.NewEngine().Walk(v, effective.Scope{All: true}, false, b, func(*effective.Effective) error { return nil })
	require.ErrorIs(t, err, effective.ErrTooMuch)
	tooMuch, ok := errors.AsType[*effective.TooMuchError](err)
	require.True(t, ok)
	return tooMuch
}

// costOf returns the cost of evaluating a condition.
func costOf(t *testing.T, when string) uint64 {
	t.Helper()
	e := onePath(t, dear("top", when), lower("own", "b: 1"))
	require.NotEmpty(t, e.Layers)
	return e.Layers[0].Blocks[0].When.Evaluate(map[string]any{"b": int64(1)}).Cost
}

func dear(name, when string) string {
	return higher(name, "overrides: {strategy: patch, when: '"+when+"', a: 1}")
}

func TestTooMuchNamesCostliestPolicy(t *testing.T) {
	const cheap, long = "spec.b > 0", "spec.b > 0 && spec.b > 0 && spec.b > 0"
	few, many := costOf(t, cheap), costOf(t, long)
	require.Greater(t, many, few)
	for name, c := range map[string]struct {
		budget   uint64
		policies []string
		want     []string // what the message names
	}{
		"one policy": {
			1, []string{dear("top", cheap)},
			[]string{"Paint infra/top", "1 units", "2 rules of 2 policies of Paint"},
		},
		"the dearest of two": {
			many + few - 1, []string{dear("first", cheap), dear("second", long)},
			[]string{"2 policies", fmt.Sprintf("%d units", many+few-1), fmt.Sprintf("Paint infra/second %d, the most", many), "3 rules of 3 policies of Paint"},
		},
		"the first by name of two that cost the same": {
			2*few - 1, []string{dear("second", cheap), dear("first", cheap)},
			[]string{"2 policies", fmt.Sprintf("%d units", 2*few-1), fmt.Sprintf("Paint infra/first %d, the most", few), "3 rules of 3 policies of Paint"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := append(c.policies, gatewayDoc("g", "istio", "http", "more"), routeDoc("r", "[{}]", "g"), lower("own", "b: 1"))
			err := stopped(t, effective.NewBudget(t.Context(), c.budget), world...)
			for _, name := range append(c.want, "path 1: HTTPRoute app/r on Gateway infra/g (2 listeners)") {
				assert.ErrorContains(t, err, name)
			}
		})
	}
}

func TestTooMuchForConstraintsAndSchemas(t *testing.T) {
	b := effective.NewBudget(t.Context(), 10)
	require.NoError(t, b.Spend(&merge.Policy{Name: "cheap"}, 2))
	err := b.Spend(nil, 9)
	require.ErrorIs(t, err, effective.ErrTooMuch)
	assert.Equal(t, "evaluation is too expensive: constraints and schemas cost more than the limit of 10 units per write; it stopped before the first path", err.Error())
}

func TestTooMuchTimeoutNamesLastPath(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http", "more"), routeDoc("r1", "[{}]", "g"), routeDoc("r2", "[{}]", "g"), higher("top", "a: 1")))
	for end, want := range map[error]string{
		context.DeadlineExceeded: "evaluation did not finish in time",
		context.Canceled:         "evaluation was canceled (context canceled)",
	} {
		ctx := &ending{Context: t.Context()}
		n := 0
		err := effective.NewEngine().Walk(v, effective.Scope{All: true}, false, effective.NewBudget(ctx, 1), func(*effective.Effective) error {
			if n++; n == 2 {
				ctx.end = end
			}
			return nil
		})
		require.ErrorIs(t, err, end)
		assert.Equal(t, want+"; it stopped at path 2: HTTPRoute app/r1 on Gateway infra/g (2 listeners), with 1 rule of 1 Paint", err.Error())
	}
}

// ending is a context that ends when end is set.
type ending struct {
	context.Context //nolint:containedctx // it is one
	end             error
}

func (e *ending) Err() error { return e.end }

func TestTooMuchNamesRoots(t *testing.T) {
	to := func(name string) string {
		return worlds.RouteTo("HTTPRoute", "app", name, "[{}]", worlds.ToService("app", "s"))
	}
	v := world(t, docs(meshed("[Service, Route]"), worlds.ServiceDoc("app", "s", 80), to("p"), to("q"), from("app", "own", toService)))
	ctx, cancel := context.WithCancel(t.Context())
	err := effective.NewEngine().Walk(v, effective.Scope{All: true}, false, effective.NewBudget(ctx, 1), func(*effective.Effective) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, effective.ErrTooMuch)
	assert.Contains(t, err.Error(), ": HTTPRoute app/p on Service app/s, with 1 rule of 1 ")
}

// A single fold that takes long is canceled.
func TestLargeFoldStopsAtDeadline(t *testing.T) {
	var rules, policies []string
	for i := range 300 {
		rules = append(rules, fmt.Sprintf("k%d: 1", i))
	}
	for i := range 3 {
		policies = append(policies, higher(fmt.Sprintf("p%d", i), "overrides: {"+strings.Join(rules, ", ")+"}"))
	}
	v := world(t, docs(append(policies, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"))...))
	var layers []merge.Layer
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		layers = e.Layers
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := merge.Fold(layers, effective.NewBudget(ctx, 1))
	require.ErrorIs(t, err, effective.ErrTooMuch)
}

func TestTooMuchTimeoutNamesCostliestPolicy(t *testing.T) {
	const place = "; it stopped at path 1: HTTPRoute app/r on Gateway infra/g (1 listener), with 1 rule of 1 Paint"
	for spent, want := range map[uint64]string{
		400_000: "evaluation did not finish in time" + place,
		600_000: "evaluation did not finish in time: of the conditions of 1 policy, those of Paint infra/dear cost the most, 600000 units" + place,
	} {
		v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), higher("dear", "a: 1")))
		ctx := &ending{Context: t.Context()}
		b := effective.NewBudget(ctx, 1_000_000)
		err := effective.NewEngine().Walk(v, effective.Scope{All: true}, false, b, func(e *effective.Effective) error {
			require.NoError(t, b.Spend(e.Outcomes[0].Policy, spent))
			ctx.end = context.DeadlineExceeded
			return b.Alive()
		})
		require.ErrorIs(t, err, effective.ErrTooMuch)
		assert.Equal(t, want, err.Error())
	}
}

func TestBudgetGrowsWithPaths(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r1", "[{}]", "g"), routeDoc("r2", "[{}]", "g"), higher("top", "a: 1")))
	walk := func(perPath uint64) error {
		b := effective.NewBudget(t.Context(), 5).Grow(perPath)
		return effective.NewEngine().Walk(v, effective.Scope{All: true}, false, b, func(*effective.Effective) error { return b.Spend(nil, 15) })
	}
	require.NoError(t, walk(15))
	require.ErrorIs(t, walk(12), effective.ErrTooMuch, "30 of 5+2*12")
	b := effective.NewBudget(t.Context(), math.MaxUint64).Grow(10)
	require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, false, b, func(*effective.Effective) error { return b.Spend(nil, 1) }), "no limit stays none")
}

func TestBudgetExceeded(t *testing.T) {
	for name, c := range map[string]struct {
		evaluated, waited time.Duration
		want              bool
	}{
		"there is time":                {time.Second, 500 * time.Millisecond, false},
		"the evaluation took it":       {2 * time.Second, 0, true},
		"the evaluation took most":     {1500 * time.Millisecond, 500 * time.Millisecond, true},
		"the API server took most":     {500 * time.Millisecond, 1500 * time.Millisecond, false},
		"the API server took it alone": {0, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				b := effective.NewBudget(ctx, 1)
				time.Sleep(c.evaluated)
				require.NoError(t, b.Wait(func() error { time.Sleep(c.waited); return nil }))
				synctest.Wait()
				got := b.Exceeded()
				require.Equal(t, c.want, got != nil)
				if got != nil {
					assert.ErrorIs(t, got, effective.ErrTooMuch)
					assert.ErrorIs(t, got, context.DeadlineExceeded)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NotNil(t, effective.NewBudget(ctx, 1).Exceeded(), "it ended before anything was read")
}
