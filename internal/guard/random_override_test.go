package guard_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// plainChange is a write to a random world.
type plainChange struct {
	before, after plainObject // nil where there is none
	owner         string
	// combined is set if one edit of the object moves requests, and another one may change
	// which policies are attached to it.
	combined bool
}

func (c plainChange) at() plainName {
	if c.after != nil {
		return c.after.key()
	}
	return c.before.key()
}

func (c plainChange) String() string {
	switch {
	case c.after == nil:
		return "delete " + c.at().String()
	case c.owner != "":
		return "put, owned by " + c.owner + ", " + textOf(c.after)
	default:
		return "put " + textOf(c.after)
	}
}

// in is the world after the change. A namespace takes all in it along.
func (c plainChange) in(w plainWorld) plainWorld {
	out := w.with(c.at(), c.after)
	if c.after == nil && c.at().Kind == "Namespace" {
		out = slices.DeleteFunc(out, func(o plainObject) bool { return o.key().Namespace == c.at().Name })
	}
	return out
}

// expected are the losses of a change, those of a new owner included, and whether
// requests move.
func (c plainChange) expected(w plainWorld) (lost []string, moves bool) {
	out, moves := losses(w, c.in(w), c.at())
	var own []plainLoss
	if c.before != nil {
		own = ownLosses(w, c.in(w), c.at())
	}
	if c.owner != "" {
		gone := plainChange{before: c.before}.in(w)
		more, _ := losses(w, gone, plainName{})
		out = append(out, more...)
		for _, l := range ownLosses(w, gone, c.at()) {
			if !slices.Contains(own, l) {
				own = append(own, plainLoss{l.policy, l.rule, "OverrideEvaded"})
			}
		}
	}
	for _, l := range own {
		out = append(out, l.String())
	}
	slices.Sort(out)
	return slices.Compact(out), moves
}

// evaluate is what the guard says of a change to those who may nothing.
func (c plainChange) evaluate(t testing.TB, v *snapshot.View, w plainWorld) (*guard.Decision, []string) {
	t.Helper()
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, c.change(t, v), nil)
	require.NoError(t, err)
	var out []string
	for _, f := range ev.Denials {
		code := string(f.Code)
		if code != "OverrideRemoved" && code != "OverrideEvaded" {
			continue // what violates a condition, say
		}
		out = append(out, plainLoss{plainName{f.Policy.Kind, f.Policy.Namespace, f.Policy.Name}, f.Rule, code}.String())
	}
	slices.Sort(out)
	return ev, slices.Compact(out)
}

// change is the change as the guard gets it.
func (c plainChange) change(t testing.TB, v *snapshot.View) guard.Change {
	t.Helper()
	change := guard.Change{Operation: guard.Update, Owner: c.owner}
	if c.before != nil {
		change.Before = v.Get(decoded(t, v, c.before).Ref())
	}
	if c.after != nil {
		change.After = decoded(t, v, c.after)
	}
	switch {
	case c.before == nil:
		change.Operation = guard.Create
	case c.after == nil:
		change.Operation = guard.Delete
	}
	return change
}

// heldUp reports whether the change is not let through while the kinds of the
// policies whose overrides it would evade were never listed.
func (c plainChange) heldUp(t testing.TB, v *snapshot.View, ev *guard.Decision) bool {
	t.Helper()
	if strings.HasPrefix(c.at().Kind, "At") {
		return true // a policy: writes of a kind that is not listed are not evaluated
	}
	for _, f := range ev.Denials {
		if f.Code != api.ReasonOverrideEvaded {
			continue
		}
		unlisted := withoutList(v, f.Policy.Kind)
		got, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), unlisted, c.change(t, unlisted), nil)
		if err == nil && !got.Denied() {
			return false
		}
	}
	return true
}

// kinds are those of one world's policies: one alone, or all.
func (d generator) kinds() []string {
	if d.labelled {
		return [][]string{{"AtRule"}, {"AtRule"}, {"AtRule"}, {"AtRule", "AtBackend"}}[d.IntN(4)]
	}
	return [][]string{{"AtRule"}, {"AtRule"}, {"AtBackend"}, {"AtListener"}, {"AtRoute"}, {"AtRule", "AtRoute", "AtBackend", "AtListener"}}[d.IntN(6)]
}

// changeCounts are numbers of changes.
type changeCounts struct {
	all, denied, moving int32 // moving: requests on which an override held go elsewhere
	// combined changes consist of two edits.
	combined, combinedDenied, combinedMoving int32
	worldsMoving                             int32
}

func (c *changeCounts) add(o changeCounts) {
	c.all, c.denied, c.moving, c.worldsMoving = c.all+o.all, c.denied+o.denied, c.moving+o.moving, c.worldsMoving+o.worldsMoving
	c.combined, c.combinedDenied, c.combinedMoving = c.combined+o.combined, c.combinedDenied+o.combinedDenied, c.combinedMoving+o.combinedMoving
}

// evaluateWorld makes changes in a random world one after another, each on top of
// those before it, and counts them.
func evaluateWorld(t testing.TB, seed uint64, changes int) changeCounts {
	t.Helper()
	var n changeCounts
	d := newGenerator(seed)
	d.expressions = seed%8 == 3
	kinds := d.kinds()
	w := newPlainWorld(d, kinds)
	v := w.view(t)
	for range changes {
		c := d.change(w, kinds)
		ev, got := c.evaluate(t, v, w)
		want, moves := c.expected(w)
		if !slices.Equal(want, got) {
			require.Fail(t, "the guard and the second implementation differ", "seed %d: %s\nit was %s\nlost, but allowed:\n%s\ndenied, but not lost:\n%s\nworld:\n%s",
				seed, c, objectsBefore(c), strings.Join(lacking(want, got), "\n"), strings.Join(lacking(got, want), "\n"), w)
		}
		one := changeCounts{all: 1, denied: int32(btoi(len(want) > 0)), moving: int32(btoi(moves))}
		if c.combined {
			one.combined, one.combinedDenied, one.combinedMoving = 1, one.denied, one.moving
		}
		n.add(one)
		if len(want) > 0 {
			require.True(t, c.heldUp(t, v, ev), "seed %d: %s\nis let through while the kind of what it evades was never listed, in\n%s", seed, c, w)
		}
		if !ev.Denied() || d.in(3) { // some by those who may
			w, v = c.in(w), ev.After
		}
	}
	n.worldsMoving = min(n.moving, 1)
	return n
}

func objectsBefore(c plainChange) string {
	if c.before == nil {
		return "not there"
	}
	return textOf(c.before)
}

func lacking(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// rounds is how many worlds are evaluated, more by hand: OVERRULE_WORLDS=20000.
func rounds(t testing.TB, few int) uint64 {
	t.Helper()
	text := os.Getenv("OVERRULE_WORLDS")
	if text == "" {
		return uint64(few)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "OVERRULE_WORLDS")
	return n
}

// No override is lost by an allowed change of those who may not remove it, and
// what is denied is a loss. Each world is a subtest by the name of its seed.
func TestAllowedChangesLoseNoOverrideInRandomWorlds(t *testing.T) {
	n := rounds(t, 300)
	var mu sync.Mutex
	var counts changeCounts
	t.Run("worlds", func(t *testing.T) {
		for seed := range n {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				of := evaluateWorld(t, seed, 10)
				mu.Lock()
				defer mu.Unlock()
				counts.add(of)
			})
		}
	})
	t.Run("counts", func(t *testing.T) {
		all := counts.all
		t.Logf("%d of %d changes are denied; %d move requests on which an override held, in %d of %d worlds", counts.denied, all, counts.moving, counts.worldsMoving, n)
		t.Logf("%d of %d changes combine two edits; %d of these are denied, and %d move requests on which an override held", counts.combined, all, counts.combinedDenied, counts.combinedMoving)
		assert.Greater(t, counts.denied, all/16, "the worlds are too dull to show anything")
		assert.Greater(t, counts.moving, all/20, "too few requests move")
		assert.Greater(t, counts.combined, all/5, "too few changes combine two edits")
		assert.Greater(t, counts.combinedMoving, all/60, "too few changes of two edits move requests")
	})
}

func FuzzAllowedChangesLoseNoOverride(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(1_000_000 + seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { evaluateWorld(t, seed, 10) })
}
