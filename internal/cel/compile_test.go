package cel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/pattern"
	golden "overrule.dev/overrule/test/messages" // messages is a variable of the package
)

func TestCompileErrors(t *testing.T) {
	const undeclared = " (in container '')"
	cases := map[string]struct {
		when string
		want []Problem
	}{
		"nothing":                           {"", []Problem{{1, 1, "is empty"}}},
		"blanks":                            {" \n\t", []Problem{{1, 1, "is empty"}}},
		"a number":                          {"1 + 1", []Problem{{1, 1, "a condition must evaluate to bool, not int"}}},
		"a text":                            {`"yes"`, []Problem{{1, 1, "a condition must evaluate to bool, not string"}}},
		"a list":                            {`[true]`, []Problem{{1, 1, "a condition must evaluate to bool, not list(bool)"}}},
		"too long":                          {strings.Repeat(" ", MaxLength) + "true", []Problem{{1, 1, "4096 bytes, not 4100"}}},
		"an unknown name":                   {"object.x == 1", []Problem{{1, 1, "undeclared reference to 'object'" + undeclared}}},
		"two, on two lines":                 {"a == 1 &&\n  b == 1", []Problem{{1, 1, "undeclared reference to 'a'" + undeclared}, {2, 3, "undeclared reference to 'b'" + undeclared}}},
		"a wrong type":                      {`1 == "a"`, []Problem{{1, 3, "found no matching overload for '_==_' applied to '(int, string)'"}}},
		"a field self lacks":                {"self.limits.a == 1", []Problem{{1, 5, `self has no field "limits", only spec`}}},
		"has of a name":                     {"has(spec)", []Problem{{1, 5, "has(spec.limits.a)"}}},
		"format":                            {`"%s".format([spec]) == ""`, []Problem{{1, 12, "format "}}},
		"a bad pattern":                     {`"a".matches("(")`, []Problem{{1, 13, "invalid matches argument: error parsing regexp: missing closing ): `(`"}}},
		"a pattern of a class that is slow": {`spec.a.matches("(?i)[` + strings.Repeat("b-\U0010fffe", 100) + `]")`, []Problem{{1, 16, tooSlow}}},
		"patterns that are slow together":   {`spec.a.matches("(?i)[b-\U0010fffe]") && spec.b.matches("(?i)[c-\U0010fffe]")`, []Problem{{1, 56, tooSlow}}},
		"a bad duration":                    {`duration("x") > duration("1s")`, []Problem{{1, 10, "invalid duration argument"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := Compile(c.when)
			assert.Nil(t, condition)
			var failed *CompileError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "condition", failed.noun)
			assert.Equal(t, c.when, failed.Expression)
			require.Len(t, failed.Problems, len(c.want))
			for i, p := range failed.Problems {
				golden.Golden(t, p.String())
				assert.Contains(t, p.Message, c.want[i].Message)
				assert.Equal(t, [2]int{c.want[i].Line, c.want[i].Column}, [2]int{p.Line, p.Column})
			}
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	cases := map[string]string{
		"an open bracket":  "spec.a > (",
		"half an operator": "spec.a >",
		"nested too deep":  strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500),
		"negated too deep": strings.Repeat("!(", 500) + "true" + strings.Repeat(")", 500),
		"no text at all":   "\xff\xfe",
		"a NUL":            "spec.a\x00",
	}
	for name, when := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(when)
			var failed *CompileError
			require.ErrorAs(t, err, &failed)
			require.NotEmpty(t, failed.Problems)
			for _, p := range failed.Problems {
				assert.Positive(t, p.Line)
				assert.Positive(t, p.Column)
				assert.NotEmpty(t, p.Message)
				assert.NotContains(t, p.Message, "\n")
			}
		})
	}
}

func TestCompileErrorMessage(t *testing.T) {
	_, err := Compile("a == 1 && b == 1")
	assert.EqualError(t, err, `condition "a == 1 && b == 1" does not compile: `+
		`1:1: undeclared reference to 'a' (in container ''); 1:11: undeclared reference to 'b' (in container '')`)
	_, err = Compile("true" + strings.Repeat(" && a", 12))
	assert.ErrorContains(t, err, "; 1:54: undeclared reference to 'a' (in container ''); and 2 more")
	_, err = Compile(strings.Repeat("é ", MaxLength))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 1000, "a huge expression is not repeated whole")
}

func TestCompileCache(t *testing.T) {
	c := newCompiler(conditions, 2, newCondition)
	first, err := c.compile("spec.a")
	require.NoError(t, err)
	again, err := c.compile("spec.a")
	require.NoError(t, err)
	assert.Same(t, first, again)

	_, wrong := c.compile("nothing")
	_, wrongAgain := c.compile("nothing")
	assert.Same(t, wrong, wrongAgain, "errors are kept, too")

	for i := range 5 {
		_, err = c.compile(fmt.Sprintf("spec.a == %d", i))
		require.NoError(t, err)
	}
	assert.Equal(t, 2, c.cache.Len())
	recompiled, err := c.compile("spec.a")
	require.NoError(t, err)
	assert.NotSame(t, first, recompiled)

	_, err = c.compile(strings.Repeat(" ", MaxLength+1))
	require.Error(t, err)
	assert.Equal(t, 2, c.cache.Len(), "what is too long is not kept")
}

const tooSlow = pattern.Advice

// Compiling patterns of the spec is charged: the limit ends an evaluation that compiles
// many.
func TestCostOfSlowPatterns(t *testing.T) {
	c, err := Compile(`spec.patterns.exists(p, "1".matches(p))`)
	require.NoError(t, err)
	patterns := func(n int, p string) m {
		all := make([]any, n)
		for i := range all {
			all[i] = strings.Repeat("-", i) + p
		}
		return m{"patterns": all}
	}
	require.ErrorIs(t, c.Evaluate(patterns(10, "(?i)[b-\U0010fffe]")).Err, ErrBudget)
	assert.NoError(t, c.Evaluate(patterns(10, "(?i)[b-y]")).Err)
	assert.ErrorContains(t, c.Evaluate(patterns(1, "(?i)["+strings.Repeat("b-\U0010fffe", 3)+"]")).Err, tooSlow)
}

func TestPatternCacheIsBounded(t *testing.T) {
	assert.ErrorContains(t, compilePattern(strings.Repeat("a", maxPattern+1)).err, "1024 bytes")
	assert.Greater(t, compilePattern("(a{30}){30}").instructions, uint64(900))
	kept := compilePattern("^kept$")
	assert.Same(t, kept, compilePattern("^kept$"))
}
