package merge_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

const (
	hierarchical = merge.SameTargetHierarchical
	oldestWins   = merge.SameTargetOldestWins
	collect      = merge.SameTargetCollect
)

// foldSummary is the result of a fold of a path.
type foldSummary struct{ effective, lost []string }

func summarize(t *testing.T, layers []merge.Layer) foldSummary {
	t.Helper()
	r := fold(t, layers...)
	backwards := slices.Clone(layers)
	slices.Reverse(backwards)
	assert.Equal(t, formatResult(t, r), formatResult(t, fold(t, backwards...)), "the order of the input shows")
	return foldSummary{effectiveOf(r), lossesOf(r)}
}

// SEMANTICS section 5, sameTarget: the same two policies with each SameTarget.
func TestFoldTwoOnOneTarget(t *testing.T) {
	pair := func(old, newer []merge.Rules) []*merge.Policy {
		return []*merge.Policy{aged(1, policy("old", old...)), aged(2, policy("new", newer...))}
	}
	blocks := func(b ...merge.Rules) []merge.Rules { return b }
	tests := map[string]struct {
		policies                          []*merge.Policy
		hierarchical, oldestWins, collect foldSummary
	}{
		"merged defaults": {
			policies: pair(blocks(defaults(mixed, rule("a", "O"), rule("b", "O"))), blocks(defaults(mixed, rule("a", "N"), rule("c", "N")))),
			hierarchical: foldSummary{
				[]string{"a=N new/defaults", "b=O old/defaults", "c=N new/defaults"},
				[]string{"old: a defaults to new/defaults"},
			},
			oldestWins: foldSummary{
				[]string{"a=O old/defaults", "b=O old/defaults", "c=N new/defaults"},
				[]string{"new: a defaults to old/defaults"},
			},
			collect: foldSummary{
				[]string{"a=O old/defaults", "b=O old/defaults", "c=N new/defaults"},
				[]string{"new: a defaults to old/defaults"},
			},
		},
		"atomic defaults": {
			policies: pair(blocks(defaults(atomic, rule("a", "O"))), blocks(defaults(atomic, rule("b", "N")))),
			hierarchical: foldSummary{
				[]string{"b=N new/defaults"},
				[]string{"old: a defaults to new/defaults"},
			},
			oldestWins: foldSummary{
				[]string{"a=O old/defaults"},
				[]string{"new: b defaults to old/defaults"},
			},
			collect: foldSummary{[]string{"a=O old/defaults", "b=N new/defaults"}, nil},
		},
		"atomic bare rules": {
			policies: pair(blocks(bare(rule("a", "O"))), blocks(bare(rule("b", "N")))),
			hierarchical: foldSummary{
				[]string{"b=N new/bare"},
				[]string{"old: a bare to new/bare"},
			},
			oldestWins: foldSummary{
				[]string{"a=O old/bare"},
				[]string{"new: b bare to old/bare"},
			},
			collect: foldSummary{[]string{"a=O old/bare", "b=N new/bare"}, nil},
		},
		"merged overrides": {
			policies: pair(blocks(overrides(mixed, rule("a", "O"))), blocks(overrides(mixed, rule("a", "N"), rule("b", "N")))),
			hierarchical: foldSummary{
				[]string{"a=O old/overrides", "b=N new/overrides"},
				[]string{"new: a overrides to old/overrides"},
			},
			oldestWins: foldSummary{
				[]string{"a=O old/overrides", "b=N new/overrides"},
				[]string{"new: a overrides to old/overrides"},
			},
			collect: foldSummary{
				[]string{"a=O old/overrides", "b=N new/overrides"},
				[]string{"new: a overrides to old/overrides"},
			},
		},
		"atomic overrides": {
			policies: pair(blocks(overrides(atomic, rule("a", "O"))), blocks(overrides(atomic, rule("b", "N")))),
			hierarchical: foldSummary{
				[]string{"a=O old/overrides"},
				[]string{"new: b overrides to old/overrides"},
			},
			oldestWins: foldSummary{
				[]string{"a=O old/overrides"},
				[]string{"new: b overrides to old/overrides"},
			},
			collect: foldSummary{[]string{"a=O old/overrides", "b=N new/overrides"}, nil},
		},
		"the newer one's override against the older one's default": {
			policies: pair(blocks(defaults(mixed, rule("a", "O"))), blocks(overrides(mixed, rule("a", "N")))),
			hierarchical: foldSummary{
				[]string{"a=N new/overrides"},
				[]string{"old: a defaults to new/overrides"},
			},
			oldestWins: foldSummary{
				[]string{"a=N new/overrides"},
				[]string{"old: a defaults to new/overrides"},
			},
			collect: foldSummary{
				[]string{"a=N new/overrides"},
				[]string{"old: a defaults to new/overrides"},
			},
		},
		"the older one's atomic default against the newer one's override": {
			policies: pair(blocks(defaults(atomic, rule("a", "O"), rule("b", "O"))), blocks(overrides(mixed, rule("a", "N")))),
			hierarchical: foldSummary{ // the newer one is lower, and applied first
				[]string{"a=N new/overrides"},
				[]string{"old: a defaults to new/overrides", "old: b defaults to new/overrides"},
			},
			oldestWins: foldSummary{
				[]string{"a=N new/overrides", "b=O old/defaults"},
				[]string{"old: a defaults to new/overrides"},
			},
			collect: foldSummary{
				[]string{"a=N new/overrides", "b=O old/defaults"},
				[]string{"old: a defaults to new/overrides"},
			},
		},
		"both have both": {
			policies: pair(
				blocks(defaults(mixed, rule("d", "O"), rule("e", "O")), overrides(mixed, rule("o", "O"))),
				blocks(defaults(mixed, rule("d", "N"), rule("f", "N")), overrides(mixed, rule("e", "N"), rule("o", "N"))),
			),
			hierarchical: foldSummary{
				[]string{"d=N new/defaults", "e=N new/overrides", "f=N new/defaults", "o=O old/overrides"},
				[]string{"old: d defaults to new/defaults", "old: e defaults to new/overrides", "new: o overrides to old/overrides"},
			},
			oldestWins: foldSummary{
				[]string{"d=O old/defaults", "e=N new/overrides", "f=N new/defaults", "o=O old/overrides"},
				[]string{"old: e defaults to new/overrides", "new: d defaults to old/defaults", "new: o overrides to old/overrides"},
			},
			collect: foldSummary{
				[]string{"d=O old/defaults", "e=N new/overrides", "f=N new/defaults", "o=O old/overrides"},
				[]string{"old: e defaults to new/overrides", "new: d defaults to old/defaults", "new: o overrides to old/overrides"},
			},
		},
		"an equal value is lost by the other": {
			policies:     pair(blocks(bare(rule("a", "S"))), blocks(bare(rule("a", "S")))),
			hierarchical: foldSummary{[]string{"a=S new/bare"}, []string{"old: a bare to new/bare (equal)"}},
			oldestWins:   foldSummary{[]string{"a=S old/bare"}, []string{"new: a bare to old/bare (equal)"}},
			collect:      foldSummary{[]string{"a=S old/bare"}, []string{"new: a bare to old/bare (equal)"}},
		},
		"a policy beside a sibling without a rule": {
			policies:     pair(blocks(bare()), blocks(bare(rule("a", "N")))),
			hierarchical: foldSummary{[]string{"a=N new/bare"}, nil},
			oldestWins:   foldSummary{[]string{"a=N new/bare"}, nil},
			collect:      foldSummary{[]string{"a=N new/bare"}, nil},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.hierarchical, summarize(t, on(3, hierarchical, test.policies...)), "hierarchical")
			assert.Equal(t, test.oldestWins, summarize(t, on(3, oldestWins, test.policies...)), "oldestWins")
			assert.Equal(t, test.collect, summarize(t, on(3, collect, test.policies...)), "collect")
		})
	}
}

// pathCase is a path and the expected result.
type pathCase struct {
	layers          []merge.Layer
	effective, lost []string
}

func runPaths(t *testing.T, tests map[string]pathCase) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, foldSummary{test.effective, test.lost}, summarize(t, test.layers))
		})
	}
}

// SEMANTICS section 5, sameTarget: oldestWins, with layers above and below.
func TestFoldOldestWins(t *testing.T) {
	class := func(b ...merge.Rules) []merge.Layer { return on(0, oldestWins, policy("class", b...)) }
	route := func(b ...merge.Rules) []merge.Layer { return on(5, oldestWins, policy("route", b...)) }
	gw := func(p ...*merge.Policy) []merge.Layer { return on(2, oldestWins, p...) }
	one := func(b ...merge.Rules) *merge.Policy { return aged(1, policy("p1", b...)) }
	two := func(b ...merge.Rules) *merge.Policy { return aged(2, policy("p2", b...)) }
	three := func(b ...merge.Rules) *merge.Policy { return aged(3, policy("p3", b...)) }
	runPaths(t, map[string]pathCase{
		"of three defaults the oldest that has the rule wins, of three overrides too": {
			layers: gw(
				one(defaults(mixed, rule("a", 1)), overrides(mixed, rule("x", 1))),
				two(defaults(mixed, rule("a", 2), rule("b", 2)), overrides(mixed, rule("x", 2), rule("y", 2))),
				three(defaults(mixed, rule("a", 3), rule("b", 3), rule("c", 3)), overrides(mixed, rule("x", 3), rule("y", 3), rule("z", 3))),
			),
			effective: []string{"a=1 p1/defaults", "b=2 p2/defaults", "c=3 p3/defaults", "x=1 p1/overrides", "y=2 p2/overrides", "z=3 p3/overrides"},
			lost: []string{
				"p2: a defaults to p1/defaults", "p2: x overrides to p1/overrides",
				"p3: a defaults to p1/defaults", "p3: b defaults to p2/defaults",
				"p3: x overrides to p2/overrides (p1 in force)", "p3: y overrides to p2/overrides",
			},
		},
		"of three atomic defaults the oldest takes, the others are refused": {
			layers:    gw(one(bare(rule("a", 1))), two(bare(rule("b", 2))), three(bare(rule("a", 3), rule("c", 3)))),
			effective: []string{"a=1 p1/bare"},
			lost:      []string{"p2: b bare to p1/bare", "p3: a bare to p1/bare", "p3: c bare to p1/bare"},
		},
		"of three atomic overrides the oldest stays": {
			layers:    gw(one(overrides(atomic, rule("a", 1))), two(overrides(atomic, rule("b", 2))), three(overrides(atomic, rule("c", 3)))),
			effective: []string{"a=1 p1/overrides"},
			lost:      []string{"p2: b overrides to p1/overrides", "p3: c overrides to p2/overrides (p1 in force)"},
		},
		"the newest one's override beats the defaults of all": {
			layers:    gw(one(defaults(mixed, rule("a", 1))), two(defaults(mixed, rule("a", 2))), three(overrides(mixed, rule("a", 3)))),
			effective: []string{"a=3 p3/overrides"},
			lost:      []string{"p1: a defaults to p3/overrides", "p2: a defaults to p1/defaults (p3 in force)"},
		},
		"a refused newer one names the older one, though rules of its own are in E": {
			layers:    gw(one(bare(rule("a", 1))), two(defaults(mixed, rule("b", 2)), bare(rule("c", 2)))),
			effective: []string{"a=1 p1/bare", "b=2 p2/defaults"},
			lost:      []string{"p2: c bare to p1/bare"},
		},
		"a rule of a lower level refuses the atomic defaults of all, and is named": {
			layers:    path(gw(one(bare(rule("a", 1))), two(bare(rule("b", 2)))), route(bare(rule("r", 0)))),
			effective: []string{"r=0 route/bare"},
			lost:      []string{"p1: a bare to route/bare", "p2: b bare to route/bare"},
		},
		"merged defaults fill what the lower level lacks, the oldest first": {
			layers: path(
				class(defaults(mixed, rule("a", 0), rule("d", 0))),
				gw(one(defaults(mixed, rule("a", 1), rule("r", 1))), two(defaults(mixed, rule("a", 2), rule("b", 2)))),
				route(bare(rule("r", 5))),
			),
			effective: []string{"a=1 p1/defaults", "b=2 p2/defaults", "d=0 class/defaults", "r=5 route/bare"},
			lost:      []string{"class: a defaults to p1/defaults", "p1: r defaults to route/bare", "p2: a defaults to p1/defaults"},
		},
		"overrides above beat those of the group, overrides of the group those below": {
			layers: path(
				class(overrides(mixed, rule("x", 0))),
				gw(one(overrides(mixed, rule("x", 1), rule("y", 1))), two(overrides(mixed, rule("y", 2), rule("z", 2)))),
				route(overrides(mixed, rule("z", 5)), bare(rule("w", 5))),
			),
			effective: []string{"w=5 route/bare", "x=0 class/overrides", "y=1 p1/overrides", "z=2 p2/overrides"},
			lost:      []string{"p1: x overrides to class/overrides", "p2: y overrides to p1/overrides", "route: z overrides to p2/overrides"},
		},
		"an unset list of the group never acts inside it, in either direction": {
			layers: path(
				class(defaults(mixed, rule("a", 0), rule("b", 0), rule("c", 0))),
				gw(unsets(t, one(defaults(mixed, rule("a", 1))), "b"), unsets(t, two(defaults(mixed, rule("b", 2))), "a", "c")),
			),
			effective: []string{"a=1 p1/defaults", "b=2 p2/defaults"},
			lost:      []string{"class: a defaults to p2/unset (p1 in force)", "class: b defaults to p1/unset (p2 in force)", "class: c defaults to p2/unset"},
		},
		"where two of the group unset a rule, the lowest took it": {
			layers: path(
				class(defaults(mixed, rule("a", 0))),
				gw(unsets(t, one(), "a"), unsets(t, two(), "a")),
			),
			lost: []string{"class: a defaults to p2/unset"},
		},
		"an unset list from below acts on all of the group": {
			layers: path(
				gw(one(bare(rule("a", 1))), two(bare(rule("a", 2), rule("b", 2)))),
				on(5, oldestWins, unsets(t, policy("route"), "a")),
			),
			effective: []string{"b=2 p2/bare"}, // p1 has no rules left
			lost:      []string{"p1: a bare to route/unset", "p2: a bare to route/unset"},
		},
		"a condition on an override sees the defaults of all": {
			layers: gw(
				one(defaults(mixed, rule("a", 9))),
				two(when(overrides(mixed, rule("b", 2)), over("a", 5))),
			),
			effective: []string{"a=9 p1/defaults", "b=2 p2/overrides?"},
		},
		"a condition on a default sees the older ones, not the newer": {
			layers: gw(
				one(when(defaults(mixed, rule("x", 1)), over("b", 0))),
				two(defaults(mixed, rule("b", 2))),
				three(when(defaults(mixed, rule("y", 3)), over("b", 0))),
			),
			effective: []string{"b=2 p2/defaults", "y=3 p3/defaults?"},
		},
		"another level is no part of the group": {
			layers:    path(on(1, oldestWins, one(bare(rule("a", 1)))), on(2, oldestWins, two(bare(rule("b", 2))))),
			effective: []string{"b=2 p2/bare"},
			lost:      []string{"p1: a bare to p2/bare"},
		},
		"of two as old the first by name wins": {
			layers:    gw(aged(1, policy("b", bare(rule("x", "B")))), aged(1, policy("a", bare(rule("x", "A"))))),
			effective: []string{"x=A a/bare"},
			lost:      []string{"b: x bare to a/bare"},
		},
		"the kind's own order goes before age": {
			layers:    gw(ranked(2, one(bare(rule("x", 1)), overrides(mixed, rule("o", 1)))), ranked(1, two(bare(rule("x", 2)), overrides(mixed, rule("o", 2))))),
			effective: []string{"o=2 p2/overrides", "x=2 p2/bare"},
			lost:      []string{"p1: o overrides to p2/overrides", "p1: x bare to p2/bare"},
		},
		"the kind's own order counts hierarchically too": {
			layers:    on(2, hierarchical, ranked(-1, two(overrides(mixed, rule("o", 2)), bare(rule("x", 2)))), one(overrides(mixed, rule("o", 1)), bare(rule("x", 1)))),
			effective: []string{"o=2 p2/overrides", "x=1 p1/bare"},
			lost:      []string{"p2: x bare to p1/overrides", "p1: o overrides to p2/overrides"},
		},
		"but never before the level": {
			layers:    path(on(1, oldestWins, ranked(9, one(overrides(mixed, rule("o", 1))))), on(2, oldestWins, ranked(0, two(overrides(mixed, rule("o", 2)))))),
			effective: []string{"o=1 p1/overrides"},
			lost:      []string{"p2: o overrides to p1/overrides"},
		},
	})
}

// SEMANTICS section 5, sameTarget: collect, with layers above and below.
func TestFoldCollect(t *testing.T) {
	class := func(b ...merge.Rules) []merge.Layer { return on(0, collect, policy("class", b...)) }
	route := func(b ...merge.Rules) []merge.Layer { return on(5, collect, policy("route", b...)) }
	gw := func(p ...*merge.Policy) []merge.Layer { return on(2, collect, p...) }
	one := func(b ...merge.Rules) *merge.Policy { return aged(1, policy("p1", b...)) }
	two := func(b ...merge.Rules) *merge.Policy { return aged(2, policy("p2", b...)) }
	three := func(b ...merge.Rules) *merge.Policy { return aged(3, policy("p3", b...)) }
	runPaths(t, map[string]pathCase{
		"all three are there": {
			layers:    gw(one(bare(rule("a", 1))), two(bare(rule("b", 2))), three(bare(rule("c", 3)))),
			effective: []string{"a=1 p1/bare", "b=2 p2/bare", "c=3 p3/bare"},
		},
		"a rule below refuses the atomic ones all together": {
			layers:    path(gw(one(bare(rule("a", 1))), two(bare(rule("b", 2)))), route(bare(rule("r", 5)))),
			effective: []string{"r=5 route/bare"},
			lost:      []string{"p1: a bare to route/bare", "p2: b bare to route/bare"},
		},
		"merged siblings join what is below, and refuse no atomic one": {
			layers: path(
				gw(one(defaults(mixed, rule("a", 1))), two(bare(rule("b", 2))), three(defaults(mixed, rule("c", 3), rule("r", 3)))),
				route(bare(rule("r", 5))),
			),
			effective: []string{"a=1 p1/defaults", "c=3 p3/defaults", "r=5 route/bare"},
			lost:      []string{"p2: b bare to route/bare", "p3: r defaults to route/bare"},
		},
		"what a refused block shares with the rules below is lost, too": {
			layers:    path(gw(one(bare(rule("a", 1), rule("r", 5)))), route(bare(rule("r", 5)))),
			effective: []string{"r=5 route/bare"},
			lost:      []string{"p1: a bare to route/bare", "p1: r bare to route/bare (equal)"},
		},
		"a collected group refuses the atomic defaults above it, by its lowest": {
			layers:    path(class(defaults(atomic, rule("c", 0))), gw(one(bare(rule("a", 1))), two(bare(rule("b", 2))))),
			effective: []string{"a=1 p1/bare", "b=2 p2/bare"},
			lost:      []string{"class: c defaults to p2/bare"},
		},
		"atomic overrides replace what was below, and keep the siblings": {
			layers: path(
				gw(one(overrides(atomic, rule("a", 1))), two(overrides(atomic, rule("b", 2))), three(defaults(mixed, rule("c", 3)))),
				route(bare(rule("r", 5), rule("s", 5))),
			),
			effective: []string{"a=1 p1/overrides", "b=2 p2/overrides", "c=3 p3/defaults"},
			lost:      []string{"route: r bare to p2/overrides", "route: s bare to p2/overrides"},
		},
		"where one is atomic and another holds the place, the holder is named": {
			layers: path(
				gw(one(overrides(mixed, rule("r", 1))), two(overrides(atomic, rule("b", 2)))),
				route(bare(rule("r", 5), rule("s", 5))),
			),
			effective: []string{"b=2 p2/overrides", "r=1 p1/overrides"},
			lost:      []string{"route: r bare to p1/overrides", "route: s bare to p2/overrides"},
		},
		"a value that an atomic one sets again is lost with the others": {
			layers:    path(gw(one(overrides(atomic, rule("r", 5)))), route(bare(rule("r", 5), rule("s", 5)))),
			effective: []string{"r=5 p1/overrides"},
			lost:      []string{"route: r bare to p1/overrides (equal)", "route: s bare to p1/overrides"},
		},
		"merged overrides leave other rules alone": {
			layers: path(
				gw(one(overrides(mixed, rule("r", 1))), two(overrides(mixed, rule("b", 2)))),
				route(bare(rule("r", 5), rule("s", 5))),
			),
			effective: []string{"b=2 p2/overrides", "r=1 p1/overrides", "s=5 route/bare"},
			lost:      []string{"route: r bare to p1/overrides"},
		},
		"an atomic override above takes the whole group": {
			layers:    path(class(overrides(atomic, rule("c", 0))), gw(one(bare(rule("a", 1))), two(bare(rule("b", 2))))),
			effective: []string{"c=0 class/overrides"},
			lost:      []string{"p1: a bare to class/overrides", "p2: b bare to class/overrides"},
		},
		"an unset list of the group acts above it alone": {
			layers: path(
				class(defaults(mixed, rule("a", 0), rule("c", 0))),
				gw(one(bare(rule("b", 1))), unsets(t, two(bare(rule("d", 2))), "a", "b")),
			),
			effective: []string{"b=1 p1/bare", "c=0 class/defaults", "d=2 p2/bare"},
			lost:      []string{"class: a defaults to p2/unset"},
		},
		"an unset list from below acts on each": {
			layers: path(
				gw(one(bare(rule("a", 1))), two(bare(rule("b", 2)))),
				on(5, collect, unsets(t, policy("route"), "a")),
			),
			effective: []string{"b=2 p2/bare"},
			lost:      []string{"p1: a bare to route/unset"},
		},
		"a condition on a default sees no sibling": {
			layers:    gw(one(defaults(mixed, rule("a", 9))), two(when(defaults(mixed, rule("b", 2)), over("a", 5)))),
			effective: []string{"a=9 p1/defaults"},
		},
		"a condition on an override sees the defaults of all, and no other override": {
			layers: gw(
				one(when(overrides(mixed, rule("x", 1)), over("a", 5)), when(overrides(mixed, rule("y", 1)), over("z", 0))),
				two(defaults(mixed, rule("a", 9))), three(overrides(mixed, rule("z", 3))),
			),
			effective: []string{"a=9 p2/defaults", "x=1 p1/overrides?", "z=3 p3/overrides"},
		},
		"the empty map of one leaves room for another": {
			layers: path(
				gw(one(overrides(patch, hollow("a"))), two(overrides(patch, rule("a.b", 2)))),
				route(bare(rule("a", 5))),
			),
			effective: []string{"a=map[] p1/overrides", "a.b=2 p2/overrides"},
			lost:      []string{"route: a bare to p2/overrides"},
		},
	})
}

// Adjacent policies of a level are a group only if they have the same SameTarget.
func TestFoldGroupsHaveSameMeet(t *testing.T) {
	one, two, three := aged(1, policy("p1", bare(rule("a", 1)))), aged(2, policy("p2", bare(rule("b", 2)))), aged(3, policy("p3", bare(rule("c", 3))))
	runPaths(t, map[string]pathCase{
		"a group above a single policy": {
			layers:    path(on(2, collect, one, two), on(2, hierarchical, three)),
			effective: []string{"c=3 p3/bare"},
			lost:      []string{"p1: a bare to p3/bare", "p2: b bare to p3/bare"},
		},
		"a single policy above a group": {
			layers:    path(on(2, hierarchical, one), on(2, collect, two, three)),
			effective: []string{"b=2 p2/bare", "c=3 p3/bare"},
			lost:      []string{"p1: a bare to p3/bare"},
		},
		"two groups on one level": {
			layers:    path(on(2, oldestWins, one), on(2, collect, two, three)),
			effective: []string{"b=2 p2/bare", "c=3 p3/bare"},
			lost:      []string{"p1: a bare to p3/bare"},
		},
	})
}

func TestFoldGroupMeter(t *testing.T) {
	asks := func(b merge.Rules) merge.Rules { return when(b, over("z", 1)) }
	for _, meet := range []merge.SameTarget{hierarchical, oldestWins, collect} {
		for name, b := range map[string]merge.Rules{"defaults": asks(defaults(mixed, rule("a", 1))), "overrides": asks(overrides(mixed, rule("a", 1)))} {
			_, err := merge.Fold(on(1, meet, policy("p", b)), &meter{})
			assert.ErrorIs(t, err, errSpent, "%s, meet %d", name, meet)
		}
	}
}
