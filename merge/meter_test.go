package merge_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

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

func TestFoldGroupMeter(t *testing.T) {
	asks := func(b merge.Rules) merge.Rules { return when(b, over("z", 1)) }
	for _, meet := range []merge.SameTarget{hierarchical, oldestWins, collect} {
		for name, b := range map[string]merge.Rules{"defaults": asks(defaults(mixed, rule("a", 1))), "overrides": asks(overrides(mixed, rule("a", 1)))} {
			_, err := merge.Fold(on(1, meet, policy("p", b)), &meter{})
			assert.ErrorIs(t, err, errSpent, "%s, meet %d", name, meet)
		}
	}
}
