package cel

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		``, `true`, `spec.a > 1`, `self.spec["a.b"]`, `has(spec.a.b)`, `spec.a.exists(x, x.y == "\u00e9")`, `[1,2][`, `"%s".format([1])`,
		`cel.bind(a, 1, a > 0)`, `spec.a.?b.orValue(1) == 1`, `spec.transformMap(k, v, v) == {}`, `math.greatest(1, 2) == 2`, `self.x`,
	} {
		f.Add(seed)
	}
	c := newCompiler(conditions, 16, newCondition)
	f.Fuzz(func(t *testing.T, when string) {
		condition, err := c.compile(when)
		if err != nil {
			var failed *CompileError
			require.ErrorAs(t, err, &failed)
			require.NotEmpty(t, failed.Problems)
			return
		}
		assert.Equal(t, when, condition.String())
		check(t, condition, spec())
	})
}

func FuzzEvaluate(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, `{"a":{"b":1,"c":[{"a":1.5},{}]},"b":"text","c":[true,null,2]}`)
	}
	f.Add(uint64(1), `{}`)
	c := newCompiler(conditions, 16, newCondition)
	f.Fuzz(func(t *testing.T, seed uint64, document string) {
		var s map[string]any
		if json.Unmarshal([]byte(document), &s) != nil {
			return
		}
		g := &generator{rand.New(rand.NewPCG(seed, 1))}
		condition, err := c.compile(g.expression(g.IntN(4)) + g.pick(" == ", " != ", " in ", " || ", " && ") + g.expression(g.IntN(4)))
		if err != nil {
			return // some macros check their arguments
		}
		check(t, condition, s)
	})
}

// check checks the invariants of answers.
func check(t *testing.T, condition *Condition, s map[string]any) {
	t.Helper()
	got := condition.Evaluate(s)
	again := condition.Evaluate(s)
	assert.Equal(t, got.Met, again.Met, condition)
	assert.Equal(t, got.Missing, again.Missing, condition)
	assert.Equal(t, got.Err == nil, again.Err == nil, condition)
	if got.Err != nil || got.Missing != "" {
		assert.False(t, got.Met, condition)
	}
	if got.Err != nil {
		var failed *EvalError
		require.ErrorAs(t, got.Err, &failed, condition)
		assert.Empty(t, got.Missing, condition)
		assert.NotContains(t, got.Err.Error(), "internal error", condition)
	}
	assert.Equal(t, errors.Is(got.Err, ErrBudget), got.Cost > Limit, condition)
}

// generator generates random expressions.
type generator struct{ *rand.Rand }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// expression returns an expression of type dyn.
func (g *generator) expression(depth int) string { return "dyn(" + g.inner(depth) + ")" }

func (g *generator) inner(depth int) string {
	if depth == 0 || g.IntN(8) == 0 {
		return g.pick(`1`, `2.5`, `"a"`, `null`, `true`, `spec`, `self.spec`, `spec.a`, `spec.a.b`, `spec.b`, `spec.c`, `spec.a.c`, `[]`, `{}`)
	}
	a, b := g.expression(depth-1), g.expression(depth-1)
	switch g.IntN(14) {
	case 0:
		return a + g.pick(" + ", " - ", " > ", " <= ", " == ", " != ", " in ", " || ", " && ") + b
	case 1:
		return a + "." + g.pick("a", "b", "c", "z")
	case 2:
		return a + "[" + b + "]"
	case 3:
		return "has(" + a + "." + g.pick("a", "b", "z") + ")"
	case 4, 5:
		return a + "." + g.pick("exists", "all", "map", "filter", "exists_one") + "(x, x." + g.pick("a", "b") + " == " + b + ")"
	case 6:
		return a + "." + g.pick("exists", "all", "transformMap", "transformList") + "(k, v, k == v || v == " + b + ")"
	case 7:
		return "(" + a + " == true ? " + b + " : dyn(spec))"
	case 8:
		return g.pick("size", "type", "string", "!", "-") + "(" + a + ")"
	case 9:
		return "sets." + g.pick("contains", "intersects", "equivalent") + "(" + a + ", " + b + ")"
	case 10:
		return a + "." + g.pick("matches", "indexOf", "split", "startsWith", "join") + "(" + b + ")"
	case 11:
		return a + ".replace(" + b + ", " + a + ")"
	case 12:
		return "cel.bind(y, " + a + ", [y, " + b + ", y])"
	default:
		return "[" + a + ", " + b + "]"
	}
}
