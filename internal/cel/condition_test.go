package cel

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/tables"
)

type m = map[string]any

// spec returns the spec of most cases.
func spec() m {
	return m{
		"rules": m{"authentication": m{"b": int64(120)}, "empty": m{}},
		"limits": m{
			"a": m{
				"rates": []any{m{"limit": int64(100), "window": "1m"}, m{"limit": int64(10000), "window": "24h"}},
				"max":   int64(100), "half": 50.5, "off": nil, "on": true, "unit": "s",
			},
			"a.b": m{"max": int64(7)},
		},
		"holes": []any{m{}, m{"limit": int64(100)}},
		"names": []any{"a", "b"},
		"big":   float64(1 << 60),
	}
}

func TestEvaluate(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		When, Lacks string
		Met         bool
	}](t, "testdata/tables/evaluate.yaml") {
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, c.When, spec(), merge.Answer{Met: c.Met, Missing: c.Lacks, HasSiblings: c.Lacks != ""})
		})
	}
	for name, c := range map[string]struct {
		when string
		spec m
		want merge.Answer
	}{
		"E1: 30 is not over 50":       {`spec.rules.authentication.a > 50`, m{"rules": m{"authentication": m{"a": int64(30), "b": int64(120)}}}, merge.Answer{}},
		"E2: 100 is over 50":          {`spec.rules.authentication.a > 50`, m{"rules": m{"authentication": m{"a": int64(100), "b": int64(120)}}}, merge.Answer{Met: true}},
		"a whole float equals an int": {`spec.x == 50`, m{"x": 50.0}, merge.Answer{Met: true}},
		"in a map without neighbours": {`spec.rules.empty.a > 5`, spec(), merge.Answer{Missing: "rules.empty.a"}},
		"in an empty spec":            {`spec.rules.a > 5`, m{}, merge.Answer{Missing: "rules"}},
		"in a spec that is nil":       {`spec.rules.a > 5`, nil, merge.Answer{Missing: "rules"}},
	} {
		t.Run(name, func(t *testing.T) { assertAnswer(t, c.when, c.spec, c.want) })
	}
}

// assertAnswer compares the answer of a condition, except for its cost.
func assertAnswer(t *testing.T, when string, spec m, want merge.Answer) {
	t.Helper()
	condition, err := Compile(when)
	require.NoError(t, err)
	got := condition.Evaluate(spec)
	require.NoError(t, got.Err)
	assert.Positive(t, got.Cost)
	got.Cost = 0
	assert.Equal(t, want, got)
	assert.Equal(t, when, condition.String())
}

func TestEvaluateErrors(t *testing.T) {
	cases := tables.Read[map[string]struct{ When, Says string }](t, "testdata/tables/evaluate-errors.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := Compile(c.When)
			require.NoError(t, err)
			got := condition.Evaluate(spec())
			var failed *EvalError
			require.ErrorAs(t, got.Err, &failed)
			require.Error(t, got.Err)
			require.ErrorContains(t, got.Err, c.Says)
			require.NotErrorIs(t, got.Err, ErrBudget)
			assert.Positive(t, got.Cost)
			assert.Equal(t, merge.Answer{Err: got.Err, Cost: got.Cost}, got)
		})
	}
}

func TestCostLimit(t *testing.T) {
	many := make([]any, 5000)
	for i := range many {
		many[i] = int64(i)
	}
	large := m{"many": many, "text": strings.Repeat("a", 1<<20), "pattern": strings.Repeat("(a?){9}", 100)}
	doubled := `[[1]]` + strings.Repeat(`.map(a, [a, a])`, 40)
	cases := map[string]string{
		"a walk over many":             `spec.many.exists(x, x < 0)`,
		"a walk in a walk":             `spec.many.all(x, spec.many.all(y, x <= y || x > y))`,
		"many compared in a walk":      `[1, 2, 3].exists(x, spec.many != spec.many)`,
		"a value compared with itself": doubled + ` == ` + doubled,
		"a text put between letters":   `spec.text.replace("", spec.text) == ""`,
		"a long text searched":         `spec.text.matches("(a*)*b")`,
		"a large pattern":              `spec.text.matches(spec.pattern)`,
		"texts joined by a long one":   `spec.many.map(x, "").join(spec.text) == ""`,
		"joined by a long one":         `["", "", "", ""].join(spec.text) == ""`,
		"a text found in a text":       `spec.text.indexOf(spec.text + "b") > 0`,
		"found from behind":            `spec.text.lastIndexOf(spec.text + "b") > 0`,
		"pairs of sets":                `sets.contains(spec.many, spec.many)`,
		"a value in many":              `[1, 2, 3].all(x, x in spec.many)`,
		"absorbed by or":               `spec.text.matches("(a*)*b") || true`,
		"a long text compared":         `[1, 2, 3].all(x, spec.text < "b")`,
		"a long text equal to":         `[1, 2, 3].all(x, spec.text != spec.text + "b")`,
		"a long text converted":        `[1, 2, 3].all(x, bytes(spec.text) != b"")`,
		"the greatest of many":         `[1, 2, 3].all(x, math.greatest(spec.many) > 0)`,
		"sizes of a long text":         `[1, 2, 3].all(x, size(spec.text) > 0)`,
	}
	for name, when := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := Compile(when)
			require.NoError(t, err)
			got := condition.Evaluate(large)
			require.ErrorIs(t, got.Err, ErrBudget)
			require.ErrorContains(t, got.Err, "10000 units")
			assert.Equal(t, merge.Answer{Err: got.Err, Cost: got.Cost}, got)
			assert.Greater(t, got.Cost, uint64(Limit))
			assert.Less(t, got.Cost, uint64(15*Limit), "what was refused is not booked in full")
		})
	}
}

func TestCostGrowsWithTheWork(t *testing.T) {
	condition, err := Compile(`spec.list.exists(x, x < 0)`)
	require.NoError(t, err)
	short := condition.Evaluate(m{"list": []any{int64(1)}})
	long := condition.Evaluate(m{"list": []any{int64(1), int64(2), int64(3), int64(4)}})
	require.NoError(t, errors.Join(short.Err, long.Err))
	assert.Less(t, short.Cost, long.Cost)
}

func TestEvaluateDoesNotEditSpec(t *testing.T) {
	s := spec()
	condition, err := Compile(`(spec.names + ["c"]).size() == 3 && spec.limits.a.rates.map(r, r.limit).size() == 2`)
	require.NoError(t, err)
	assert.True(t, condition.Evaluate(s).Met)
	assert.Equal(t, spec(), s)
}

func TestEvaluateConcurrently(t *testing.T) {
	wants := map[string]merge.Answer{
		`spec.limits.a.rates.exists(r, r.limit > 50)`: {Met: true},
		`spec.limits.a.burst > 5`:                     {Missing: "limits.a.burst", HasSiblings: true},
	}
	s := spec()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for when, want := range wants {
				condition, err := Compile(when)
				if !assert.NoError(t, err) {
					return
				}
				for range 100 {
					got := condition.Evaluate(s)
					got.Cost = 0
					assert.Equal(t, want, got)
				}
			}
			wrong, err := Compile(`spec.limits.a.max.join(",") == "" || !spec.limits.a.max`)
			if assert.NoError(t, err) {
				assert.Error(t, wrong.Evaluate(s).Err)
			}
		})
	}
	group.Wait()
}
