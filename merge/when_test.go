package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// SEMANTICS section 3, when.
func TestFoldWhen(t *testing.T) {
	tests := map[string]struct {
		stack                          []*merge.Policy
		effective, lost, counts, notes []string
	}{
		"a condition that is met lets the block take part": {
			stack:     []*merge.Policy{policy("gw", when(overrides(mixed, rule("a", 5)), over("a", 5))), policy("route", bare(rule("a", 9)))},
			effective: []string{"a=5 gw/overrides?"},
			lost:      []string{"route: a bare to gw/overrides?"},
			counts:    []string{"gw 1 of 1", "route 0 of 1"},
		},
		"one that is not met: its rules neither survive nor are lost": {
			stack:     []*merge.Policy{policy("gw", when(overrides(mixed, rule("a", 5)), over("a", 50))), policy("route", bare(rule("a", 9)))},
			effective: []string{"a=9 route/bare"},
			counts:    []string{"gw 0 of 0 silent", "route 1 of 1"},
		},
		"it sees the policy's own earlier blocks": {
			stack:     []*merge.Policy{policy("gw", defaults(mixed, rule("a", 9)), when(overrides(mixed, rule("b", 1)), over("a", 5)))},
			effective: []string{"a=9 gw/defaults", "b=1 gw/overrides?"},
			counts:    []string{"gw 2 of 2"},
		},
		"it does not see the policy's own later blocks": {
			stack: []*merge.Policy{policy("gw",
				when(defaults(mixed, rule("b", 1)), over("a", 5)), overrides(mixed, rule("a", 9)))},
			effective: []string{"a=9 gw/overrides"},
			counts:    []string{"gw 1 of 1 silent"},
		},
		"it sees what lower overrides made of E, not what is written below": {
			stack: []*merge.Policy{
				policy("class", when(overrides(mixed, rule("c", 1)), over("a", 5))),
				policy("gw", overrides(mixed, rule("a", 1))),
				policy("route", bare(rule("a", 9))),
			},
			effective: []string{"a=1 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
			counts:    []string{"class 0 of 0 silent", "gw 1 of 1", "route 0 of 1"},
		},
		"it does not see what higher policies will do": {
			stack: []*merge.Policy{
				policy("class", overrides(mixed, rule("a", 1))),
				policy("gw", when(overrides(mixed, rule("b", 1)), over("a", 5))),
				policy("route", bare(rule("a", 9))),
			},
			effective: []string{"a=1 class/overrides", "b=1 gw/overrides?"},
			lost:      []string{"route: a bare to class/overrides"},
			counts:    []string{"class 1 of 1", "gw 1 of 1", "route 0 of 1"},
		},
		"a block of defaults may stand under a condition too": {
			stack: []*merge.Policy{
				policy("class", when(defaults(mixed, rule("b", 1)), over("a", 5))),
				policy("gw", when(defaults(mixed, rule("c", 1)), over("a", 50))),
				policy("route", bare(rule("a", 9))),
			},
			effective: []string{"a=9 route/bare", "b=1 class/defaults?"},
			counts:    []string{"class 1 of 1", "gw 0 of 0 silent", "route 1 of 1"},
		},
		"a missing key is not met, for overrides too, without a note if the map has no other keys": {
			stack:     []*merge.Policy{policy("gw", when(overrides(mixed, rule("a", 5)), over("a", 1)))},
			effective: nil,
			counts:    []string{"gw 0 of 0 silent"},
		},
		"a missing key in a map with other keys is not met, with a note": {
			stack:     []*merge.Policy{policy("gw", when(overrides(mixed, rule("a.max", 5)), over("a.max", 1))), policy("route", bare(rule("a.unit", "s")))},
			effective: []string{"a.unit=s route/bare"},
			counts:    []string{"gw 0 of 0 silent", "route 1 of 1"},
			notes:     []string{`gw overrides when spec.a.max > 1: missing "a.max", err <nil>`},
		},
		"overrides whose condition fails apply, with a note": {
			stack:     []*merge.Policy{policy("gw", when(overrides(mixed, rule("a", 5)), over("a", 1))), policy("route", bare(rule("a", "many")))},
			effective: []string{"a=5 gw/overrides?"},
			lost:      []string{"route: a bare to gw/overrides?"},
			counts:    []string{"gw 1 of 1", "route 0 of 1"},
			notes:     []string{`gw overrides when spec.a > 1: missing "", err a is no number`},
		},
		"defaults whose condition fails do not apply, with a note": {
			stack:     []*merge.Policy{policy("gw", when(defaults(mixed, rule("b", 5)), over("a", 1))), policy("route", bare(rule("a", "many")))},
			effective: []string{"a=many route/bare"},
			counts:    []string{"gw 0 of 0 silent", "route 1 of 1"},
			notes:     []string{`gw defaults when spec.a > 1: missing "", err a is no number`},
		},
		"bare rules whose condition cannot be evaluated do not either": {
			stack:     []*merge.Policy{policy("gw", when(bare(rule("b", 5)), over("a", 1))), policy("route", bare(rule("a", "many")))},
			effective: []string{"a=many route/bare"},
			counts:    []string{"gw 0 of 0 silent", "route 1 of 1"},
			notes:     []string{`gw bare when spec.a > 1: missing "", err a is no number`},
		},
		"of two blocks of one kind, the one that is silent neither survives nor is lost": {
			stack: []*merge.Policy{
				policy("gw", overrides(mixed, rule("a", 5)), when(overrides(mixed, rule("b", 5)), over("a", 50))),
				policy("route", bare(rule("a", 9))),
			},
			effective: []string{"a=5 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
			counts:    []string{"gw 1 of 1 silent", "route 0 of 1"},
		},
		"a null is not in the spec that a condition sees": {
			stack:     []*merge.Policy{policy("gw", when(overrides(mixed, rule("b", 5)), over("a", 1))), policy("route", bare(rule("a", nil)))},
			effective: []string{"a=<nil> route/bare"},
			counts:    []string{"gw 0 of 0 silent", "route 1 of 1"},
		},
		"the unset list joins even if no block takes part": {
			stack: []*merge.Policy{
				policy("class", defaults(mixed, rule("b", 1))),
				unsets(t, policy("gw", when(overrides(mixed, rule("x", 5)), over("a", 50))), "b"),
				policy("route", bare(rule("a", 9))),
			},
			effective: []string{"a=9 route/bare"},
			lost:      []string{"class: b defaults to gw/unset"},
			counts:    []string{"class 0 of 1", "gw 0 of 0 silent", "route 1 of 1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := fold(t, stack(test.stack...)...)
			assert.Equal(t, test.effective, effectiveOf(result), "effective")
			assert.Equal(t, test.lost, lossesOf(result), "lost")
			assert.Equal(t, test.counts, countsOf(result), "counts")
			assert.Equal(t, test.notes, notesOf(result), "notes")
		})
	}
}

func TestConditionOfEmptyBlockIsNotEvaluated(t *testing.T) {
	never := condition{text: "never", answer: func(map[string]any) merge.Answer {
		t.Error("a block without a rule takes no part, and its condition is not asked")
		return merge.Answer{Met: true}
	}}
	fold(t, stack(policy("gw", when(overrides(mixed), never)))...)
}
