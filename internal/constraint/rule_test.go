package constraint_test

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// unmet evaluates a constraint with one rule.
func unmet(t *testing.T, rule, spec string) []constraint.Unmet {
	t.Helper()
	got, err := evaluate(valid(t, "rules: ["+rule+"]"), effective(t, spec), &meter{})
	require.NoError(t, err)
	return got
}

// assertUnmet compares requirements that are not met with the start of what they say:
// their field path, and the location and value of each violation. A bound that a value
// cannot be compared with is "incomparable".
func assertUnmet(t *testing.T, want []string, got []constraint.Unmet) {
	t.Helper()
	messages.Golden(t)
	require.Len(t, got, len(want), "%v", got)
	for i, u := range got {
		messages.Golden(t, u.At+": "+u.Message)
		at := u.At
		if len(u.Beyond) > 0 && u.Beyond[0] == nil && (strings.HasSuffix(at, ".min") || strings.HasSuffix(at, ".max")) {
			at += " incomparable"
		}
		place, text, _ := strings.Cut(want[i], ": ")
		assert.Equal(t, place, at)
		parts := strings.Split(text, "; ")
		assert.Regexp(t, "^"+regexp.QuoteMeta(parts[0])+"([,: ]|$)", u.Message)
		for _, part := range parts[1:] {
			assert.Contains(t, u.Message, part)
		}
	}
}

func TestRules(t *testing.T) {
	cases := tables.Read[map[string]struct {
		Rule, Spec string
		Want       []string
	}](t, "testdata/tables/rules.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assertUnmet(t, c.Want, unmet(t, c.Rule, c.Spec)) })
	}
}

func TestUnmetBeyond(t *testing.T) {
	got := unmet(t, "{path: 'a[*]', min: 2, max: 3}", "a: [4, x, 10.5, 1, 3]")
	require.Len(t, got, 2)
	assert.Equal(t, "a[*]", got[0].Rule)
	assert.Equal(t, []*big.Rat{nil, big.NewRat(15, 2), big.NewRat(1, 1)}, got[1].Beyond, "above, the worst first")
	assert.Equal(t, []*big.Rat{nil, big.NewRat(1, 1)}, got[0].Beyond, "below")
}

func TestUnmetWorse(t *testing.T) {
	cases := tables.Read[map[string]struct {
		Rule, Before, After string
		Want                bool
	}](t, "testdata/tables/unmet-worse.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := unmet(t, c.Rule, c.Before), unmet(t, c.Rule, c.After)
			require.Len(t, before, 1)
			require.Len(t, after, 1)
			assert.Equal(t, before[0].At, after[0].At)
			assert.Equal(t, c.Want, after[0].Worse(before[0]))
		})
	}
}

func TestRuleCostIsCharged(t *testing.T) {
	empty := errors.New("nothing left")
	items := strings.Repeat("1, ", 9_999) + "1"
	p := &meter{limit: 10_000, err: empty}
	_, err := evaluate(valid(t, "rules: [{path: 'a[*]', max: 1}]"), effective(t, "a: ["+items+"]"), p)
	require.ErrorIs(t, err, empty)
	p = &meter{limit: 20_000, err: empty}
	got, err := evaluate(valid(t, "rules: [{path: 'a[*]', max: 1}]"), effective(t, "a: ["+items+"]"), p)
	require.NoError(t, err)
	assert.Empty(t, got, "10,000 values are looked at, one by one")
	assert.Greater(t, p.spent, uint64(10_000))

	p = &meter{}
	_, err = evaluate(valid(t, "rules: [{path: a, pattern: x}]"), effective(t, "a: '"+strings.Repeat("x", 10_000)+"'"), p)
	require.NoError(t, err)
	assert.Greater(t, p.spent, uint64(1_000), "a long text costs")
}
