package merge_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

// foldCase is a stack, the highest policy first, and the expected result.
type foldCase struct {
	stack           []*merge.Policy
	effective, lost []string
}

func runFold(t *testing.T, tests map[string]foldCase) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := fold(t, stack(test.stack...)...)
			assert.Equal(t, test.effective, effectiveOf(result), "effective")
			assert.Equal(t, test.lost, lossesOf(result), "lost")
		})
	}
}

// SEMANTICS section 3, the fold.
func TestFoldBlocks(t *testing.T) {
	runFold(t, map[string]foldCase{
		"no policy, no rules": {},
		"a policy without a rule has no effect and does not fill E": {
			stack:     []*merge.Policy{policy("gw", defaults(atomic, rule("a", 1))), policy("route", bare())},
			effective: []string{"a=1 gw/defaults"},
		},
		"defaults come before bare rules, overrides last, whatever their order in the policy": {
			stack: []*merge.Policy{policy("p", overrides(mixed, rule("a", "o")), bare(rule("a", "b")), defaults(mixed, rule("a", "d"), rule("b", "d")))},
			// bare is atomic here and rejected, since the defaults are applied before
			effective: []string{"a=o p/overrides", "b=d p/defaults"},
		},
		"bare rules are a second block of defaults, with a strategy of their own": {
			stack: []*merge.Policy{policy("p",
				defaults(atomic, rule("a", "d")),
				block(merge.Bare, mixed, []merge.Rule{rule("a", "b"), rule("c", "b")}),
			)},
			effective: []string{"a=d p/defaults", "c=b p/bare"},
		},
		"bare rules never act on lower rules as overrides do": {
			stack:     []*merge.Policy{policy("gw", block(merge.Bare, mixed, []merge.Rule{rule("a", "G")})), policy("route", bare(rule("a", "R")))},
			effective: []string{"a=R route/bare"},
			lost:      []string{"gw: a bare to route/bare"},
		},
		"the object's own field is below every block": {
			stack: []*merge.Policy{policy("p",
				defaults(mixed, rule("a", "d")),
				block(merge.Object, mixed, []merge.Rule{rule("a", "object")}),
			)},
			effective: []string{"a=object p/object"},
		},
		"into an empty E a block goes whole, whatever its strategy": {
			stack:     []*merge.Policy{policy("gw", defaults(atomic, rule("a", 1), rule("b", 2)))},
			effective: []string{"a=1 gw/defaults", "b=2 gw/defaults"},
		},
		"atomic defaults are refused whole by a single rule": {
			stack:     []*merge.Policy{policy("gw", defaults(atomic, rule("a", 1), rule("b", 2))), policy("route", bare(rule("z", 0)))},
			effective: []string{"z=0 route/bare"},
			lost:      []string{"gw: a defaults to route/bare", "gw: b defaults to route/bare"},
		},
		"merged defaults add what is not there": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule("a", 1), rule("z", 2))), policy("route", bare(rule("z", 0)))},
			effective: []string{"a=1 gw/defaults", "z=0 route/bare"},
			lost:      []string{"gw: z defaults to route/bare"},
		},
		"atomic overrides take even what they do not name": {
			stack:     []*merge.Policy{policy("gw", overrides(atomic, rule("a", 1))), policy("route", bare(rule("b", 2), rule("c", 3)))},
			effective: []string{"a=1 gw/overrides"},
			lost:      []string{"route: b bare to gw/overrides", "route: c bare to gw/overrides"},
		},
		"the strategy is that of the policy whose block is applied": {
			stack: []*merge.Policy{
				policy("class", defaults(mixed, rule("c", "C"))),
				policy("gw", defaults(atomic, rule("b", "G"))),
				policy("route", defaults(atomic, rule("a", "R"))),
			},
			effective: []string{"a=R route/defaults", "c=C class/defaults"},
			lost:      []string{"gw: b defaults to route/defaults"},
		},
		"of two overrides the higher wins, of two defaults the lower": {
			stack: []*merge.Policy{
				policy("class", overrides(mixed, rule("o", "C")), defaults(mixed, rule("d", "C"))),
				policy("gw", overrides(mixed, rule("o", "G")), defaults(mixed, rule("d", "G"))),
			},
			effective: []string{"d=G gw/defaults", "o=C class/overrides"},
			lost:      []string{"class: d defaults to gw/defaults", "gw: o overrides to class/overrides"},
		},
	})
}

// SEMANTICS section 3, unset.
func TestFoldUnset(t *testing.T) {
	g := func(s merge.Strategy) *merge.Policy {
		return policy("gw", defaults(s, rule("rules.x.a", 1), rule("rules.x.b", 2), rule("rules.y.a", 3)))
	}
	route := func(names ...string) *merge.Policy { return unsets(t, policy("route"), names...) }
	runFold(t, map[string]foldCase{
		"a key takes out that rule": {
			stack:     []*merge.Policy{g(mixed), route("rules.x.a")},
			effective: []string{"rules.x.b=2 gw/defaults", "rules.y.a=3 gw/defaults"},
			lost:      []string{"gw: rules.x.a defaults to route/unset"},
		},
		"a prefix takes out all that is under it": {
			stack:     []*merge.Policy{g(mixed), route("rules.x")},
			effective: []string{"rules.y.a=3 gw/defaults"},
			lost:      []string{"gw: rules.x.a defaults to route/unset", "gw: rules.x.b defaults to route/unset"},
		},
		"a bare name takes out every rule whose last segment it is": {
			stack:     []*merge.Policy{g(mixed), route("a")},
			effective: []string{"rules.x.b=2 gw/defaults"},
			lost:      []string{"gw: rules.x.a defaults to route/unset", "gw: rules.y.a defaults to route/unset"},
		},
		"two segments are no bare name": {
			stack:     []*merge.Policy{g(mixed), route("x.a")},
			effective: []string{"rules.x.a=1 gw/defaults", "rules.x.b=2 gw/defaults", "rules.y.a=3 gw/defaults"},
		},
		"a beginning of a segment is no prefix": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule("limits.ab", 1))), route("limits.a", "lim")},
			effective: []string{"limits.ab=1 gw/defaults"},
		},
		"unset acts before the strategy: what is left of an atomic block is taken by an empty E": {
			stack:     []*merge.Policy{g(atomic), route("rules.x")},
			effective: []string{"rules.y.a=3 gw/defaults"},
			lost:      []string{"gw: rules.x.a defaults to route/unset", "gw: rules.x.b defaults to route/unset"},
		},
		"what unset took out of a refused block was lost to the unset": {
			stack:     []*merge.Policy{g(atomic), unsets(t, policy("route", bare(rule("z", 0))), "rules.x")},
			effective: []string{"z=0 route/bare"},
			lost: []string{
				"gw: rules.x.a defaults to route/unset", "gw: rules.x.b defaults to route/unset", "gw: rules.y.a defaults to route/bare",
			},
		},
		"it never acts on the policy's own defaults": {
			stack:     []*merge.Policy{unsets(t, policy("p", defaults(mixed, rule("a", 1)), block(merge.Bare, mixed, []merge.Rule{rule("b", 2)})), "a", "b")},
			effective: []string{"a=1 p/defaults", "b=2 p/bare"},
		},
		"it acts on the bare rules of a higher policy": {
			stack:     []*merge.Policy{policy("gw", bare(rule("a", 1), rule("b", 2))), route("a")},
			effective: []string{"b=2 gw/bare"},
			lost:      []string{"gw: a bare to route/unset"},
		},
		"it never acts on lower policies": {
			stack:     []*merge.Policy{unsets(t, policy("gw"), "a"), policy("route", bare(rule("a", 1)))},
			effective: []string{"a=1 route/bare"},
		},
		"it never acts on overrides": {
			stack:     []*merge.Policy{policy("gw", overrides(atomic, rule("a", 1)), defaults(mixed, rule("a", 0))), route("a")},
			effective: []string{"a=1 gw/overrides"},
		},
		"the list survives an atomic override": {
			stack: []*merge.Policy{
				policy("class", defaults(mixed, rule("a", "C"), rule("b", "C"))),
				policy("gw", overrides(atomic, rule("o", "G"))),
				unsets(t, policy("route", bare(rule("r", "R"))), "a"),
			},
			effective: []string{"b=C class/defaults", "o=G gw/overrides"},
			lost:      []string{"class: a defaults to route/unset", "route: r bare to gw/overrides"},
		},
		"the lowest policy that names a rule took it": {
			stack: []*merge.Policy{
				policy("class", defaults(mixed, rule("a", 1))), unsets(t, policy("gw"), "a"), route("a"),
			},
			lost: []string{"class: a defaults to route/unset"},
		},
		"a name with dots is written in brackets": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule(`limits["a.b"]`, 1), rule("limits.a", 2))), route(`limits["a.b"]`)},
			effective: []string{"limits.a=2 gw/defaults"},
			lost:      []string{`gw: limits["a.b"] defaults to route/unset`},
		},
	})
}

// A policy at two levels of a path is applied at each, and counted once.
func TestFoldAtTwoLevels(t *testing.T) {
	twice := unsets(t, policy("twice", overrides(mixed, rule("o", "T")), defaults(mixed, rule("d", "T"))), "u", "d")
	between := policy("gw", overrides(mixed, rule("o", "G")), defaults(mixed, rule("u", "G"), rule("v", "G")))
	result := fold(t,
		merge.Layer{Policy: twice, Level: 0},
		merge.Layer{Policy: between, Level: 1},
		merge.Layer{Policy: twice, Level: 2},
	)
	assert.Equal(t, []string{"d=T twice/defaults", "o=T twice/overrides", "v=G gw/defaults"}, effectiveOf(result))
	assert.Equal(t, []string{"twice 2 of 2", "gw 1 of 3"}, countsOf(result))
	assert.Equal(t, []string{"gw: o overrides to twice/overrides", "gw: u defaults to twice/unset"}, lossesOf(result))
}

// Its unset list never applies to its own blocks, not even at the higher level.
func TestFoldUnsetAtTwoLevels(t *testing.T) {
	twice := unsets(t, policy("twice", defaults(mixed, rule("d", "T"))), "d")
	result := fold(t,
		merge.Layer{Policy: twice, Level: 0},
		merge.Layer{Policy: policy("gw", overrides(atomic, rule("o", "G"))), Level: 1},
		merge.Layer{Policy: twice, Level: 2},
	)
	assert.Equal(t, []string{"d=T twice/defaults", "o=G gw/overrides"}, effectiveOf(result))
}

// SEMANTICS section 6: what beat a rule, recorded when it was lost.
func TestFoldLosses(t *testing.T) {
	runFold(t, map[string]foldCase{
		"a rule that won against one override is lost to the next": {
			stack: []*merge.Policy{
				policy("class", overrides(mixed, rule("a", "C"))),
				policy("gw", overrides(mixed, rule("b", "G"))),
				policy("route", bare(rule("a", "R"), rule("b", "R"))),
			},
			effective: []string{"a=C class/overrides", "b=G gw/overrides"},
			lost:      []string{"route: a bare to class/overrides", "route: b bare to gw/overrides"},
		},
		"the one who took the rule beat it, and another is in force in the end": {
			stack: []*merge.Policy{
				policy("class", overrides(mixed, rule("a", "C"))),
				policy("gw", overrides(mixed, rule("a", "G"))),
				policy("route", bare(rule("a", "R"))),
			},
			effective: []string{"a=C class/overrides"},
			lost:      []string{"gw: a overrides to class/overrides", "route: a bare to gw/overrides (class in force)"},
		},
		"a refused block loses to the lowest policy with a rule, not to the next lower one": {
			stack: []*merge.Policy{
				policy("class", defaults(atomic, rule("b", "C"))),
				policy("gw", defaults(mixed, rule("b", "G"))),
				policy("route", bare(rule("z", "R"))),
			},
			effective: []string{"b=G gw/defaults", "z=R route/bare"},
			lost:      []string{"class: b defaults to route/bare (gw in force)"},
		},
		"a policy whose rules were all replaced is not the lowest with a rule": {
			stack: []*merge.Policy{
				policy("class", defaults(atomic, rule("c", "C"))),
				policy("gw", overrides(atomic, rule("b", "G"))),
				policy("route", bare(rule("a", "R"))),
			},
			effective: []string{"b=G gw/overrides"},
			lost:      []string{"class: c defaults to gw/overrides", "route: a bare to gw/overrides"},
		},
		"a default that meets an equal value is lost, too": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule("a", 1))), policy("route", bare(rule("a", 1)))},
			effective: []string{"a=1 route/bare"},
			lost:      []string{"gw: a defaults to route/bare (equal)"},
		},
		"a refused atomic default that meets an equal value is lost with its others": {
			stack:     []*merge.Policy{policy("gw", defaults(atomic, rule("a", 1), rule("b", 1))), policy("route", bare(rule("a", 1)))},
			effective: []string{"a=1 route/bare"},
			lost:      []string{"gw: a defaults to route/bare (equal)", "gw: b defaults to route/bare"},
		},
		"a value that an override sets again is from the override": {
			stack:     []*merge.Policy{policy("gw", overrides(mixed, rule("a", 1))), policy("route", bare(rule("a", 1)))},
			effective: []string{"a=1 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides (equal)"},
		},
		"the same with an atomic override": {
			stack:     []*merge.Policy{policy("gw", overrides(atomic, rule("a", 1))), policy("route", bare(rule("a", 1), rule("b", 2)))},
			effective: []string{"a=1 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides (equal)", "route: b bare to gw/overrides"},
		},
		"what is equal is the value in the end, not that of the policy that beat it": {
			stack: []*merge.Policy{
				policy("class", overrides(mixed, rule("a", 1))), policy("gw", overrides(mixed, rule("a", 2))), policy("route", bare(rule("a", 1))),
			},
			effective: []string{"a=1 class/overrides"},
			lost:      []string{"gw: a overrides to class/overrides", "route: a bare to gw/overrides (equal) (class in force)"},
		},
		"a policy that beat another and was replaced whole without that key": {
			stack: []*merge.Policy{
				policy("top", overrides(atomic, rule("t", 1))), policy("class", overrides(atomic, rule("c", 1))),
				policy("gw", overrides(atomic, rule("g", 1))), policy("route", bare(rule("a", 1))),
			},
			effective: []string{"t=1 top/overrides"},
			lost: []string{
				"class: c overrides to top/overrides", "gw: g overrides to class/overrides (top in force)", "route: a bare to gw/overrides (top in force)",
			},
		},
		"each of a chain names who beat it, and who is in force": {
			stack: []*merge.Policy{
				policy("class", overrides(mixed, rule("a", 2))),
				policy("gw", overrides(mixed, rule("a", 1))),
				policy("ns", defaults(mixed, rule("a", 1))),
				policy("route", bare(rule("a", 1))),
			},
			effective: []string{"a=2 class/overrides"},
			lost: []string{
				"gw: a overrides to class/overrides", "ns: a defaults to route/bare (class in force)", "route: a bare to gw/overrides (class in force)",
			},
		},
		"a policy that overrides its own default has lost nothing": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule("a", 1)), overrides(mixed, rule("a", 2)))},
			effective: []string{"a=2 gw/overrides"},
		},
		"a default lost to a lower policy is won back by the same policy's override": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule("a", 1)), overrides(mixed, rule("a", 2))), policy("route", bare(rule("a", 3)))},
			effective: []string{"a=2 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
		},
	})
}

// A key of a policy is counted once, even if several blocks have it.
func TestFoldCounts(t *testing.T) {
	result := fold(t, stack(
		policy("gw", defaults(mixed, rule("a", 1), rule("b", 1)), overrides(mixed, rule("a", 2))),
		policy("empty"),
		policy("route", bare(rule("b", 3))),
	)...)
	assert.Equal(t, []string{"gw 1 of 2", "empty 0 of 0", "route 1 of 1"}, countsOf(result))
	gw := result.Outcomes[0]
	assert.True(t, gw.TookPart)
	assert.True(t, gw.BlockApplied(merge.Defaults))
	assert.False(t, gw.BlockApplied(merge.Bare))
	assert.True(t, gw.BlockApplied(merge.Overrides))
	assert.False(t, result.Outcomes[1].TookPart)
}

type meter struct {
	spent, limit uint64
	by           []string // the policy of each Spend, "" for nil
	closed       bool
}

var errSpent = errors.New("spent")

func (m *meter) Spend(by *merge.Policy, cost uint64) error {
	m.spent += cost
	name := ""
	if by != nil {
		name = by.Name
	}
	m.by = append(m.by, name)
	if m.spent > m.limit || m.closed {
		return errSpent
	}
	return nil
}

func TestFoldMeter(t *testing.T) {
	layers := stack(
		policy("gw", when(overrides(mixed, rule("a", 1)), over("a", 1)), when(defaults(mixed, rule("b", 1)), over("a", 1))),
		policy("route", bare(rule("a", 5))),
	)
	m := &meter{limit: 2}
	_, err := merge.Fold(layers, m)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), m.spent, "each evaluation is booked")
	assert.Equal(t, []string{"gw", "gw"}, m.by, "on the policy whose condition it was")

	_, err = merge.Fold(layers, &meter{limit: 1})
	require.ErrorIs(t, err, errSpent)
}

func TestFoldOfManyRulesChecksMeter(t *testing.T) {
	rules := make([]merge.Rule, 100)
	for i := range rules {
		rules[i] = rule(fmt.Sprintf("limits.l%03d", i), 1)
	}
	tests := map[string]struct {
		layers int
		meet   merge.SameTarget
		asked  int
	}{
		"few rules do not":                       {layers: 2},
		"each layer does from the 257th rule on": {layers: 5, asked: 3},
		"and each of those on one target, for its defaults and for its overrides": {layers: 5, meet: oldestWins, asked: 8},
		"and of those side by side": {layers: 3, meet: collect, asked: 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var policies []*merge.Policy
			for i := range test.layers {
				policies = append(policies, policy(fmt.Sprintf("p%d", i), defaults(mixed, rules...)))
			}
			m := &meter{}
			_, err := merge.Fold(on(0, test.meet, policies...), m)
			require.NoError(t, err)
			assert.Equal(t, make([]string, test.asked), append([]string{}, m.by...))

			_, err = merge.Fold(on(0, test.meet, policies...), &meter{closed: true})
			assert.Equal(t, test.asked > 0, errors.Is(err, errSpent), "and is ended by it")
		})
	}
}

func TestRejectedBlockIsLostToLowestPolicy(t *testing.T) {
	lost := rule("z", 1)
	twice := policy("twice", defaults(atomic, rule("a", 1)), bare(lost))
	tests := map[string]struct {
		stack []*merge.Policy
		want  []string
	}{
		"what was lowest may be gone by the next refusal": {
			stack: []*merge.Policy{
				policy("top", defaults(atomic, lost)),
				policy("middle", overrides(atomic, rule("c", 1))),
				policy("low", defaults(atomic, lost)),
				policy("route", bare(rule("a", 1))),
			},
			want: []string{"top: z defaults to middle/overrides", "low: z defaults to route/bare (middle in force)", "route: a bare to middle/overrides"},
		},
		"the lowest of the others, not the first by key, where the policy itself is lowest": {
			stack: []*merge.Policy{twice, policy("second", defaults(mixed, rule("b", 1))), policy("first", defaults(mixed, rule("c", 1))), twice},
			want:  []string{"twice: z bare to first/defaults"},
		},
		"itself, where it alone filled the effective policy": {
			stack: []*merge.Policy{twice},
			want:  []string{"twice: z bare to twice/defaults"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, lossesOf(fold(t, stack(test.stack...)...)))
		})
	}
}
