package effective_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// randomChange is one write: a random object, or the deletion of one.
type randomChange struct {
	snapshot.Change
	objects []snapshot.Object
	text    string
}

func newRandomChange(t testing.TB, d dice, w *randomWorld) randomChange {
	t.Helper()
	o, text := decodeObject(t, w.View, d.throw())
	was := w.Get(o.Ref())
	if was != nil && d.in(3) {
		return randomChange{snapshot.Delete(o.Ref()), []snapshot.Object{was}, "delete " + o.Ref().String()}
	}
	c := randomChange{snapshot.Put(o), []snapshot.Object{o}, "put " + text}
	if was != nil {
		c.objects = append(c.objects, was)
	}
	return c
}

// dependent returns a path on which the effect of one change depends on the other
// change, if there is one.
func dependent(none, first, second, both map[pathID]string) (pathID, bool) {
	all := maps.Clone(none)
	for _, m := range []map[pathID]string{first, second, both} {
		maps.Copy(all, m)
	}
	for at := range all {
		switch {
		case first[at] == none[at] && both[at] == second[at]:
		case second[at] == none[at] && both[at] == first[at]:
		default:
			return at, true
		}
	}
	return pathID{}, false
}

// overlaps makes pairs of changes in a random world, and returns how many
// footprints overlapped and how many had to.
func overlaps(t *testing.T, seed uint64, pairs int) (overlapping, required int) {
	t.Helper()
	d := newDice(seed)
	w := newRandomWorld(t, d)
	engine := effective.NewEngine()
	none := fullWalk(t, engine, w.View)
	for range pairs {
		a, b := newRandomChange(t, d, w), newRandomChange(t, d, w)
		if a.Ref == b.Ref {
			continue
		}
		first, second, both := w.With(a.Change), w.With(b.Change), w.With(a.Change, b.Change)
		overlap := worlds.Overlap(effective.FootprintOf(a.objects, w.View, first), effective.FootprintOf(b.objects, w.View, both))
		at, depends := dependent(none, fullWalk(t, engine, first), fullWalk(t, engine, second), fullWalk(t, engine, both))
		if depends {
			required++
			require.True(t, overlap, "seed %d: %s\nand %s\naffect %s in the world\n%s", seed, a.text, b.text, at, w)
		}
		if overlap {
			overlapping++
		}
	}
	return overlapping, required
}

func TestFootprintsOfDependentChangesOverlapInRandomWorlds(t *testing.T) {
	const rounds, pairs = 500, 8
	overlapping, required := 0, 0
	for seed := range uint64(rounds) {
		o, r := overlaps(t, 5_000_000+seed, pairs)
		overlapping, required = overlapping+o, required+r
	}
	t.Logf("%d pairs: %d overlap, %d must", rounds*pairs, overlapping, required)
	assert.Greater(t, required, rounds*pairs/100, "the worlds are too dull to show anything")
}

func FuzzFootprintsOfDependentChangesOverlap(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(6_000_000 + seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { overlaps(t, seed, 8) })
}

func TestPartsCoverView(t *testing.T) {
	for seed := range uint64(100) {
		w := newRandomWorld(t, newDice(7_000_000+seed))
		engine := effective.NewEngine()
		got := make(map[pathID]string)
		for part := range effective.Parts(w.View) {
			for at, picture := range walkOnce(t, engine, w.View, part, false) {
				require.NotContains(t, got, at, "seed %d: it is in two parts", seed)
				got[at] = picture
			}
		}
		require.Equal(t, fullWalk(t, engine, w.View), got, "seed %d", seed)
	}
}

func TestPartsCanStopEarly(t *testing.T) {
	for seed := range uint64(20) {
		w := newRandomWorld(t, newDice(7_000_000+seed))
		parts := 0
		for range effective.Parts(w.View) {
			parts++
		}
		for stop := 1; stop <= parts; stop++ {
			n := 0
			for range effective.Parts(w.View) {
				if n++; n == stop {
					break
				}
			}
			assert.Equal(t, stop, n)
		}
	}
}
