package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
)

// Two changes of random worlds that are allowed each alone, and the second not after the first,
// are not both allowed while the first is in flight.
func TestAllowedPairsLoseNoOverrideInRandomWorlds(t *testing.T) {
	g := &guard.Guard{Engine: effective.NewEngine()}
	conflicts, n := 0, rounds(t, 150)
	for seed := range n {
		d := newGenerator(seed)
		kinds := d.kinds()
		w := newPlainWorld(d, kinds)
		v := w.view(t)
		allowed := func(v *snapshot.View, c guard.Change) bool {
			ev, err := g.Evaluate(t.Context(), v, c, nil)
			require.NoError(t, err)
			return !ev.Denied()
		}
		for range 8 {
			a, b := d.change(w, kinds), d.change(w, kinds)
			first, second := a.change(t, v), b.change(t, v)
			if a.at() == b.at() || !allowed(v, first) || !allowed(v, second) {
				continue
			}
			after := a.in(w).view(t)
			if (after.Get(second.Object().Ref()) == nil) != (second.Before == nil) {
				continue // the first one deletes the object, or its namespace
			}
			if _, lost := b.evaluate(t, after, a.in(w)); len(lost) == 0 {
				continue
			}
			conflicts++
			log := inflight.New(snapshot.New(), inflight.Options{MaxWait: -1})
			admit := func(c guard.Change) bool {
				result, err := log.Evaluate(t.Context(), g, func() *snapshot.View { return v }, inflight.Write{
					Change: c, Precondition: func() inflight.Precondition { return inflight.Precondition{UID: types.UID(c.Object().Ref().Key())} },
				})
				require.NoError(t, err)
				return !result.Decision.Denied()
			}
			require.True(t, admit(first))
			assert.False(t, admit(second), "seed %d: %s\nit was %s\nwhile in flight: %s\nit was %s\nin\n%s", seed, b, objectsBefore(b), a, objectsBefore(a), w)
		}
	}
	assert.Greater(t, conflicts, int(n/1000), "the worlds are too dull to show anything")
}
