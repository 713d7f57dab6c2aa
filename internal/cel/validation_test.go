package cel

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	golden "overrule.dev/overrule/test/messages" // messages is a variable of the package
	"overrule.dev/overrule/test/tables"
)

// variables returns the variables of the tests.
func variables() *Variables {
	always := func(v any) func() any { return func() any { return v } }
	many := make([]any, 10_000)
	for i := range many {
		many[i] = int64(i)
	}
	return &Variables{
		Effective: always(m{
			"limits": m{"a": m{"max": int64(100), "unit": "s"}, "a.b": m{"max": int64(1)}}, "holes": []any{m{}, m{"max": int64(1)}},
			"many": many, "text": "x",
		}),
		Before:  always(m{"limits": m{"a": m{"max": int64(50)}}}),
		Origins: always(m{"limits.a": m{"kind": "Paint", "namespace": "infra", "block": "overrides"}}),
		Path:    always(m{"route": m{"name": "r", "labels": m{"team": "a"}}, "rule": m{"index": int64(0)}}),
		Request: always(m{"operation": "UPDATE", "userInfo": m{"username": "eve", "groups": []any{"dev"}}}),
	}
}

func TestValidations(t *testing.T) {
	cases := map[string]struct {
		expression string
		want       bool
	}{
		"effective":                  {`effective.limits.a.max <= 100`, true},
		"it is not true":             {`effective.limits.a.max <= 99`, false},
		"before":                     {`effective.limits.a.max <= before.limits.a.max`, false},
		"origins":                    {`origins["limits.a"].namespace == "infra"`, true},
		"origins in a walk":          {`origins.all(k, o, o.block != "overrides" || o.namespace == "infra")`, true},
		"path":                       {`path.route.labels.team == "a" && path.rule.index == 0`, true},
		"an element that is absent":  {`has(path.gateway)`, false},
		"request":                    {`request.operation == "UPDATE" && "dev" in request.userInfo.groups`, true},
		"a variable of a macro self": {`[{"x": 1}].all(self, self.x == 1)`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := CompileValidation(c.expression)
			require.NoError(t, err)
			assert.Equal(t, c.expression, v.String())
			met, cost, err := v.Evaluate(variables())
			require.NoError(t, err)
			assert.Equal(t, c.want, met)
			assert.Positive(t, cost)
		})
	}
}

func TestValidationEvaluateErrors(t *testing.T) {
	cases := tables.Read[map[string]struct{ Expression, Says string }](t, "testdata/tables/validation-evaluate-errors.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := CompileValidation(c.Expression)
			require.NoError(t, err)
			met, cost, err := v.Evaluate(variables())
			var failed *EvalError
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, c.Says)
			golden.Golden(t, err.Error())
			assert.Nil(t, met)
			assert.Positive(t, cost)
			assert.Equal(t, errors.Is(err, ErrBudget), cost > Limit)
			assert.Equal(t, strings.Contains(c.Says, "no such key") && c.Says != "no such key: max", MissesKey(err))
		})
	}
}

func TestValidationCostLimit(t *testing.T) {
	v, err := CompileValidation(`effective.many.all(x, x >= 0)`)
	require.NoError(t, err)
	_, _, err = v.Evaluate(variables())
	require.ErrorIs(t, err, ErrBudget)
	message, err := CompileMessage(`string(effective.many.all(x, x >= 0))`)
	require.NoError(t, err)
	_, _, err = message.Evaluate(variables())
	require.ErrorIs(t, err, ErrBudget)
}

func TestMessages(t *testing.T) {
	m, err := CompileMessage(`"limit " + string(effective.limits.a.max)`)
	require.NoError(t, err)
	text, cost, err := m.Evaluate(variables())
	require.NoError(t, err)
	assert.Equal(t, "limit 100", text)
	assert.Positive(t, cost)
	assert.Equal(t, `"limit " + string(effective.limits.a.max)`, m.String())

	m, err = CompileMessage(`effective.limits.a.max`)
	require.NoError(t, err, "its type is not known")
	_, _, err = m.Evaluate(variables())
	require.EqualError(t, err, "a message must evaluate to string, not int")

	m, err = CompileMessage(`effective.limits.b.unit`)
	require.NoError(t, err)
	_, _, err = m.Evaluate(variables())
	require.EqualError(t, err, "no such key: effective.limits.b")
}

func TestValidationCompileErrors(t *testing.T) {
	cases := map[string]struct{ expression, want string }{
		"nothing":                     {"", `1:1: `},
		"a number":                    {"1", `validation "1" does not compile: 1:1: a validation must evaluate to bool, not int`},
		"a condition's variable":      {"spec.a == 1", `validation "spec.a == 1" does not compile: 1:1: undeclared reference to 'spec' (in container '')`},
		"an element that no path has": {"path.gatway.name == 'a'", `validation "path.gatway.name == 'a'" does not compile: 1:5: undefined field 'gatway' of path`},
		"a field that no user has":    {"request.userInfo.name == 'a'", `validation "request.userInfo.name == 'a'" does not compile: 1:17: undefined field 'name' of request.userInfo`},
		"a port compared with text":   {"path.listener.port == '80'", `validation "path.listener.port == '80'" does not compile: 1:20: found no matching overload for '_==_' applied to '(int, string)'`},
		"format":                      {`"%s".format([path]) == ""`, `1:12: format `},
		"has of a name":               {`has(effective)`, `1:5: has() requires`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := CompileValidation(c.expression)
			assert.Nil(t, v)
			require.ErrorContains(t, err, c.want)
			golden.Golden(t, err.Error())
		})
	}
	_, err := CompileMessage(`1`)
	assert.EqualError(t, err, `message "1" does not compile: 1:1: a message must evaluate to string, not int`)
	_, err = CompileMessage(`path.gatway.name`)
	assert.EqualError(t, err, `message "path.gatway.name" does not compile: 1:5: undefined field 'gatway' of path`)
}

func TestVariablesAreComputedOnDemand(t *testing.T) {
	asked := map[string]int{}
	of := func(name string) func() any {
		return func() any { asked[name]++; return m{"a": int64(1)} }
	}
	on := &Variables{Effective: of("effective"), Before: of("before"), Origins: of("origins"), Path: of("path"), Request: of("request")}
	v, err := CompileValidation(`effective.a == 1 && before.a == 1`)
	require.NoError(t, err)
	met, _, err := v.Evaluate(on)
	require.NoError(t, err)
	assert.Equal(t, true, met)
	assert.Equal(t, map[string]int{"effective": 1, "before": 1}, asked)

	v, err = CompileValidation(`before == null`)
	require.NoError(t, err)
	met, _, err = v.Evaluate(&Variables{})
	require.NoError(t, err)
	assert.Equal(t, true, met, "what is not set is null")
}

func TestReads(t *testing.T) {
	v, err := CompileValidation(`effective.all(k, has(path.route) && k == origins.a.name)`)
	require.NoError(t, err)
	m, err := CompileMessage(`"a" + request.operation`)
	require.NoError(t, err)
	for name, want := range map[string][2]bool{
		"effective": {true, false}, "path": {true, false}, "origins": {true, false}, "before": {false, false}, "request": {false, true},
	} {
		assert.Equal(t, want, [2]bool{v.Reads(name), m.Reads(name)}, name)
	}
}

func TestValues(t *testing.T) {
	limit := func(limit any) m { return m{"limit": limit, "unit": "s"} }
	on := &Variables{
		Effective: func() any {
			return m{
				"a": int64(2), "hidden": Opaque, "limits": m{"a.b": limit(int64(1)), "c": limit(int64(9)), "d": limit(int64(1))},
				"rates": []any{limit(int64(1)), limit(int64(8)), limit(int64(1))},
			}
		},
		Before:  func() any { return m{"a": int64(1)} },
		Request: func() any { return m{"operation": "UPDATE"} },
	}
	for expression, want := range map[string][]Read{
		`effective.a <= before.a && effective.a > 5`:                                          {{"effective.a", int64(2)}, {"before.a", int64(1)}},
		`request.operation == 'CREATE'`:                                                       nil,
		`effective.hidden == 1`:                                                               nil,
		`effective.rates[0].limit > 1`:                                                        {{"effective.rates[0].limit", int64(1)}},
		`effective.rates.all(r, r.limit < 5)`:                                                 {{"effective.rates[1].limit", int64(8)}},
		`effective.rates.all(i, r, r.limit + i < 5)`:                                          {{"effective.rates[0].limit", int64(1)}, {"effective.rates[1].limit", int64(8)}},
		`effective.limits.all(k, effective.limits[k].limit < 1)`:                              {{`effective.limits["a.b"].limit`, int64(1)}},
		`effective.limits.all(k, l, k != 'c' || l.limit < 5)`:                                 {{"effective.limits.c.limit", int64(9)}},
		`effective.rates.all(r, r.unit == "s") && effective.a == 1`:                           {{"effective.a", int64(2)}},
		`[effective.limits].all(l, l.c.limit < 5) || effective.rates.exists(r, r.limit == 2)`: {{"effective.limits.c.limit", int64(9)}, {"effective.rates[2].limit", int64(1)}},
	} {
		t.Run(expression, func(t *testing.T) {
			v, err := CompileValidation(expression)
			require.NoError(t, err)
			got, cost, _ := v.Values(on)
			assert.Equal(t, want, got)
			assert.Positive(t, cost)
		})
	}
}
