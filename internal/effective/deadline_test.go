package effective_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/test/worlds"
)

// A walk and a comparison stop at the path for which visit returns an error, whatever
// the levels of the kind.
func TestWalkStopsAtAnyPath(t *testing.T) {
	stop := errors.New("stop")
	failing := func(at int) (*int, func() error) {
		n := 0
		return &n, func() error {
			n++
			if n > at {
				return stop
			}
			return nil
		}
	}
	for seed := range uint64(25) {
		d := newDice(seed)
		v, engine := newRandomWorld(t, d).View, effective.NewEngine()
		all := effective.Scope{All: true}
		for at := range len(fullWalk(t, engine, v)) {
			n, visit := failing(at)
			require.ErrorIs(t, engine.Walk(v, all, false, unlimited(), func(*effective.Effective) error { return visit() }), stop)
			require.Equal(t, at+1, *n)
			n, visit = failing(at)
			require.ErrorIs(t, engine.Compare(v, compiledKinds(t), all, unlimited(), func(effective.Pair) error { return visit() }), stop)
			require.Equal(t, at+1, *n)
		}
	}
}

func TestMeshWalkStopsAtDeadline(t *testing.T) {
	v := world(t, docs(meshed("[Service, Route]"), worlds.ServiceDoc("app", "s", 80),
		worlds.RouteTo("HTTPRoute", "app", "p", "[{}]", worlds.ToService("app", "s")), from("app", "own", toService)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := effective.NewEngine().Walk(v, effective.Scope{All: true}, false, effective.NewBudget(ctx, 1), func(*effective.Effective) error { return nil })
	require.ErrorIs(t, err, effective.ErrTooMuch)
}
