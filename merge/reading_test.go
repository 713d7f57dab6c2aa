package merge_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// Bare blocks with Layer.As.
func TestFoldAs(t *testing.T) {
	class := on(0, hierarchical, policy("class", bare(rule("a", "C"), rule("c", "C"))))
	gw := func() []merge.Layer {
		return on(1, hierarchical, policy("gw", bare(rule("a", "G"), rule("b", "G"))))
	}
	route := on(2, hierarchical, policy("route", bare(rule("a", "R"))))
	runPaths(t, map[string]pathCase{
		"a lower policy dictates: patched onto the closest parent, what is above that is refused": {
			layers:    path(as(merge.Bare, atomic, class...), as(merge.Bare, patch, gw()...), route),
			effective: []string{"a=R route/bare", "b=G gw/bare"},
			lost:      []string{"class: a bare to route/bare", "class: c bare to route/bare", "gw: a bare to route/bare"},
		},
		"a lower policy dictates, and the closest parent is the class": {
			layers:    path(as(merge.Bare, patch, class...), route),
			effective: []string{"a=R route/bare", "c=C class/bare"},
			lost:      []string{"class: a bare to route/bare"},
		},
		"the strategy of the policy itself does not count then": {
			layers: path(as(merge.Bare, atomic, on(0, hierarchical, policy("gw",
				block(merge.Bare, mixed, []merge.Rule{rule("b", "G")})))...), route),
			effective: []string{"a=R route/bare"},
			lost:      []string{"gw: b bare to route/bare"},
		},
		"an annotation prefers the parent: its bare rules are overrides": {
			layers:    path(as(merge.Overrides, mixed, gw()...), on(2, hierarchical, policy("route", bare(rule("a", "R"), rule("z", "R"))))),
			effective: []string{"a=G gw/overrides", "b=G gw/overrides", "z=R route/bare"},
			lost:      []string{"route: a bare to gw/overrides"},
		},
		"of two parents that are preferred the higher wins, and names what it acted as": {
			layers:    path(as(merge.Overrides, mixed, class...), as(merge.Overrides, mixed, gw()...), route),
			effective: []string{"a=C class/overrides", "b=G gw/overrides", "c=C class/overrides"},
			lost:      []string{"gw: a overrides to class/overrides", "route: a bare to gw/overrides (class in force)"},
		},
		"atomic overrides take all": {
			layers:    path(as(merge.Overrides, atomic, gw()...), on(2, hierarchical, policy("route", bare(rule("z", "R"))))),
			effective: []string{"a=G gw/overrides", "b=G gw/overrides"},
			lost:      []string{"route: z bare to gw/overrides"},
		},
		"read as defaults": {
			layers:    path(as(merge.Defaults, mixed, gw()...), route),
			effective: []string{"a=R route/bare", "b=G gw/defaults"},
			lost:      []string{"gw: a defaults to route/bare"},
		},
		"a lower unset list acts on bare rules, not on those read as overrides": {
			layers:    path(as(merge.Bare, mixed, class...), as(merge.Overrides, mixed, gw()...), on(2, hierarchical, unsets(t, policy("route"), "a", "c"))),
			effective: []string{"a=G gw/overrides", "b=G gw/overrides"},
			lost:      []string{"class: a bare to route/unset (gw in force)", "class: c bare to route/unset"},
		},
		"other blocks are applied as they say, and the policy's own overrides come last": {
			layers: path(as(merge.Overrides, mixed, on(1, hierarchical, policy("gw",
				overrides(mixed, rule("a", "O")), bare(rule("a", "B"), rule("d", "B")), defaults(mixed, rule("d", "D"), rule("e", "D"))))...), route),
			effective: []string{"a=O gw/overrides", "d=B gw/overrides", "e=D gw/defaults"},
			lost:      []string{"route: a bare to gw/overrides"},
		},
		"in a group it counts as what it is read as": {
			layers: path(
				as(merge.Overrides, mixed, on(1, oldestWins, aged(2, policy("new", bare(rule("a", "N"), rule("b", "N")))))...),
				on(1, oldestWins, aged(1, policy("old", defaults(mixed, rule("a", "O")), overrides(mixed, rule("b", "O"))))),
			),
			effective: []string{"a=N new/overrides", "b=O old/overrides"},
			lost:      []string{"old: a defaults to new/overrides", "new: b overrides to old/overrides"},
		},
		"read as atomic defaults in a group, the oldest takes": {
			layers: path(
				as(merge.Defaults, atomic, on(1, oldestWins, aged(1, policy("old", bare(rule("a", "O")))))...),
				as(merge.Defaults, atomic, on(1, oldestWins, aged(2, policy("new", bare(rule("b", "N")))))...),
			),
			effective: []string{"a=O old/defaults"},
			lost:      []string{"new: b defaults to old/defaults"},
		},
		"collected overrides keep each other": {
			layers: path(
				as(merge.Overrides, atomic, on(1, collect, policy("one", bare(rule("o", 1))), policy("two", bare(rule("t", 2))))...),
				route,
			),
			effective: []string{"o=1 one/overrides", "t=2 two/overrides"},
			lost:      []string{"route: a bare to two/overrides"},
		},
	})
}

// The effect of a condition that fails depends on what the block acts as.
func TestFoldAsWithConditionError(t *testing.T) {
	for b, want := range map[merge.Block]foldSummary{
		merge.Overrides: {[]string{"a=5 gw/overrides?"}, []string{"route: a bare to gw/overrides?"}},
		merge.Defaults:  {[]string{"a=many route/bare"}, nil},
		merge.Bare:      {[]string{"a=many route/bare"}, nil},
	} {
		layers := path(
			as(b, mixed, on(0, hierarchical, policy("gw", when(bare(rule("a", 5)), over("a", 1))))...),
			on(1, hierarchical, policy("route", bare(rule("a", "many")))),
		)
		assert.Equal(t, want, summarize(t, layers), b.String())
		assert.Equal(t, []string{"gw " + b.String() + ` when spec.a > 1: missing "", err a is no number`}, notesOf(fold(t, layers...)))
	}
}

// BlockApplied is about the blocks of the policy, AppliedAs about what they acted as.
func TestOutcomeAppliedAs(t *testing.T) {
	gw := policy("gw", bare(rule("a", 1), rule("b", 1)), when(overrides(mixed, rule("z", 1)), over("z", 1)))
	result := fold(t, path(
		as(merge.Overrides, mixed, on(0, hierarchical, gw)...),
		on(1, hierarchical, policy("route", bare(rule("a", 2)))),
	)...)
	assert.Equal(t, []string{"gw 2 of 2 silent", "route 0 of 1"}, countsOf(result))
	o := result.Outcomes[0]
	assert.True(t, o.TookPart)
	assert.True(t, o.BlockApplied(merge.Bare))
	assert.False(t, o.BlockApplied(merge.Overrides), "its condition is not met")
	assert.True(t, o.AppliedAs(merge.Bare, merge.Overrides))
	assert.False(t, o.AppliedAs(merge.Bare, merge.Bare))
	assert.False(t, o.AppliedAs(merge.Overrides, merge.Overrides))

	route := result.Outcomes[1]
	assert.True(t, route.AppliedAs(merge.Bare, merge.Bare))
	assert.False(t, route.AppliedAs(merge.Bare, merge.Overrides))
}

func TestOutcomeOfOtherBlocks(t *testing.T) {
	o := fold(t, stack(policy("p", defaults(mixed, rule("a", 1)), overrides(mixed, rule("b", 1))))...).Outcomes[0]
	assert.True(t, o.AppliedAs(merge.Defaults, merge.Defaults))
	assert.True(t, o.AppliedAs(merge.Overrides, merge.Overrides))
	assert.False(t, o.AppliedAs(merge.Defaults, merge.Overrides))
	assert.False(t, o.AppliedAs(merge.Bare, merge.Bare))
}

// A policy at two levels may have a different Layer.As at each.
func TestFoldAsAtTwoLevels(t *testing.T) {
	twice := policy("twice", bare(rule("a", "T"), rule("b", "T")))
	gw := on(1, hierarchical, policy("gw", overrides(mixed, rule("a", "G")), block(merge.Bare, mixed, []merge.Rule{rule("b", "G")})))
	tests := map[string]struct {
		pathCase
		acted []merge.Block
	}{
		"at the higher": {
			pathCase{
				path(as(merge.Overrides, mixed, on(0, hierarchical, twice)...), gw, on(2, hierarchical, twice)),
				[]string{"a=T twice/overrides", "b=T twice/overrides"},
				[]string{"gw: a overrides to twice/overrides", "gw: b bare to twice/bare"},
			},
			[]merge.Block{merge.Bare, merge.Overrides},
		},
		"at the lower": {
			pathCase{
				path(on(0, hierarchical, twice), gw, as(merge.Defaults, mixed, on(2, hierarchical, twice)...)),
				[]string{"a=G gw/overrides", "b=T twice/defaults"},
				[]string{"twice: a bare to gw/overrides", "gw: b bare to twice/defaults"},
			},
			[]merge.Block{merge.Defaults, merge.Bare},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, foldSummary{test.effective, test.lost}, summarize(t, test.layers))
			o := fold(t, test.layers...).Outcomes[0]
			assert.Equal(t, 2, o.Rules, "each key once")
			for _, b := range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides} {
				assert.Equal(t, slices.Contains(test.acted, b), o.AppliedAs(merge.Bare, b), b.String())
			}
		})
	}
}

// A field of the object itself is the lowest layer.
func TestFoldObject(t *testing.T) {
	object := on(9, hierarchical, policy("object", block(merge.Object, atomic, []merge.Rule{rule("t.request", "1s"), rule("t.retry", 3)})))
	above := func(b ...merge.Rules) []merge.Layer { return on(1, oldestWins, policy("gw", b...)) }
	theirs := func() []merge.Rule { return []merge.Rule{rule("t.idle", "9s"), rule("t.request", "9s")} }
	runPaths(t, map[string]pathCase{
		"it is there without any policy": {
			layers:    object,
			effective: []string{"t.request=1s object/object", "t.retry=3 object/object"},
		},
		"atomic defaults are refused": {
			layers:    path(above(defaults(atomic, theirs()...)), object),
			effective: []string{"t.request=1s object/object", "t.retry=3 object/object"},
			lost:      []string{"gw: t.idle defaults to object/object", "gw: t.request defaults to object/object"},
		},
		"patched defaults fill what the object lacks": {
			layers:    path(above(defaults(patch, theirs()...)), object),
			effective: []string{"t.idle=9s gw/defaults", "t.request=1s object/object", "t.retry=3 object/object"},
			lost:      []string{"gw: t.request defaults to object/object"},
		},
		"bare rules of a policy are defaults to it": {
			layers:    path(above(bare(theirs()...)), object),
			effective: []string{"t.request=1s object/object", "t.retry=3 object/object"},
			lost:      []string{"gw: t.idle bare to object/object", "gw: t.request bare to object/object"},
		},
		"patched overrides replace what they name": {
			layers:    path(above(overrides(patch, theirs()...)), object),
			effective: []string{"t.idle=9s gw/overrides", "t.request=9s gw/overrides", "t.retry=3 object/object"},
			lost:      []string{"object: t.request object to gw/overrides"},
		},
		"atomic overrides replace all": {
			layers:    path(above(overrides(atomic, theirs()...)), object),
			effective: []string{"t.idle=9s gw/overrides", "t.request=9s gw/overrides"},
			lost:      []string{"object: t.request object to gw/overrides", "object: t.retry object to gw/overrides"},
		},
		"a reading of bare blocks does not touch it": {
			layers:    as(merge.Overrides, atomic, object[0]),
			effective: []string{"t.request=1s object/object", "t.retry=3 object/object"},
		},
		"an object without the field takes no part": {
			layers:    path(above(defaults(atomic, theirs()...)), on(9, hierarchical, policy("object", block(merge.Object, atomic, nil)))),
			effective: []string{"t.idle=9s gw/defaults", "t.request=9s gw/defaults"},
		},
		"collected policies stand beside it, unless they are atomic": {
			layers: path(on(1, collect,
				policy("one", defaults(patch, rule("t.idle", 1))), policy("two", defaults(atomic, rule("t.other", 2)))), object),
			effective: []string{"t.idle=1 one/defaults", "t.request=1s object/object", "t.retry=3 object/object"},
			lost:      []string{"two: t.other defaults to object/object"},
		},
	})
	o := fold(t, object...).Outcomes[0]
	assert.True(t, o.BlockApplied(merge.Object))
	assert.False(t, o.BlockApplied(merge.Bare))
}
