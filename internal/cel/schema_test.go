package cel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// limits returns a schema with a value of each type.
func limits(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var s apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
type: object
properties:
  limits:
    type: object
    additionalProperties:
      type: object
      properties:
        max: {type: integer}
        ratio: {type: number}
        unit: {type: string}
        window: {type: string, format: duration}
        size: {x-kubernetes-int-or-string: true}
        enabled: {type: boolean}
        maybe: {type: string, nullable: true}
        rates: {type: array, items: {type: object, properties: {limit: {type: integer}}}}
        names: {type: array, items: {type: string}}
        bounds: {type: array, items: {type: number}}
  rules:
    type: object
    properties: {authentication: {type: object}, x-dash: {type: string}}
  free: {type: object, x-kubernetes-preserve-unknown-fields: true}
  open: {type: object, additionalProperties: true}
  untyped: {}
  loose: {type: array}
`), &s))
	return &s
}

func TestCheckTypesErrors(t *testing.T) {
	cases := map[string]struct {
		expression string
		want       []Problem
	}{
		"a field that the schema does not have":              {`effective.limitz.size() > 0`, []Problem{{1, 10, "undefined field 'limitz' of effective"}}},
		"a deep one":                                         {`effective.limits.a.maks > 1`, []Problem{{1, 19, "undefined field 'maks' of effective.limits.a"}}},
		"one in a list's item":                               {`effective.limits.a.rates[0].limitt > 1`, []Problem{{1, 28, "undefined field 'limitt' of effective.limits.a.rates[0]"}}},
		"one in a walk":                                      {`effective.limits.all(k, l, l.rates.all(r, r.limitt < 5))`, []Problem{{1, 44, "undefined field 'limitt' of r"}}},
		"has of one":                                         {`has(effective.limits.a.maks)`, []Problem{{1, 4, "undefined field 'maks' of effective.limits.a"}}},
		"one in an index":                                    {`effective.rules["authn"] == 1`, []Problem{{1, 16, "undefined field 'authn'"}}},
		"one that is looked for":                             {`"authn" in effective.rules`, []Problem{{1, 9, "undefined field 'authn'"}}},
		"one of before":                                      {`before.limits.a.maks > 1`, []Problem{{1, 16, "undefined field 'maks' of before.limits.a"}}},
		"a number compared with a text":                      {`effective.limits.a.max > "5"`, []Problem{{1, 24, "found no matching overload for '_>_' applied to '(int, string)'"}}},
		"a text compared with a number":                      {`effective.limits.a.unit == 5`, []Problem{{1, 25, "found no matching overload for '_==_' applied to '(string, int)'"}}},
		"an object compared with a number":                   {`effective.rules == 5`, []Problem{{1, 17, "found no matching overload for '_==_' applied to '(object(effective.rules), int)'"}}},
		"a text of format duration compared with a real one": {`effective.limits.a.window < duration("5s")`, []Problem{{1, 27, "found no matching overload for '_<_' applied to '(string, duration)'"}}},
		"a text in a list of numbers":                        {`"a" in effective.limits.a.bounds`, []Problem{{1, 5, "found no matching overload for '@in' applied to '(string, list(double))'"}}},
		"a field of a number":                                {`effective.limits.a.max.x == 1`, []Problem{{1, 23, "type 'int' does not support field selection"}}},
		"a walk over a number":                               {`effective.limits.a.max.all(x, x > 1)`, []Problem{{1, 19, "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"}}},
		"a text that should be true or false":                {`effective.limits.a.unit && true`, []Problem{{1, 19, "expected type 'bool' but found 'string'"}}},
		"a condition that is none":                           {`effective.limits.a.unit ? true : false`, []Problem{{1, 25, "found no matching overload for '_?_:_' applied to '(string, bool, bool)'"}}},
		"what may be null compared with a number":            {`effective.limits.a.maybe > 5`, []Problem{{1, 26, "found no matching overload for '_>_' applied to '(string, int)'"}}},
		"two on two lines": {"effective.limits.a.maks > 1 &&\n effective.x == 1", []Problem{
			{1, 19, "undefined field 'maks' of effective.limits.a"}, {2, 11, "undefined field 'x' of effective"},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := CompileValidation(c.expression)
			require.NoError(t, err)
			var failed *CompileError
			require.ErrorAs(t, v.CheckTypes(limits(t)), &failed)
			assert.Equal(t, &CompileError{noun: "validation", Expression: c.expression, Problems: c.want}, failed)
			assert.NoError(t, v.CheckTypes(nil), "without a schema nothing is known")
		})
	}
}

// Operations that cel-go's checker rejects and that work on JSON are allowed.
func TestCheckTypesAllowsJSON(t *testing.T) {
	cases := map[string]string{
		"a field":                             `effective.limits.a.max > 5`,
		"has of a field":                      `has(effective.limits.a) && has(effective.limits.a.max)`,
		"an index of a map":                   `effective.limits["a.b"].max > 5`,
		"an index of an object":               `effective.rules["x-dash"] == "a"`,
		"a computed index of an object":       `effective.rules[effective.limits.a.unit] == "a"`,
		"a key of an object":                  `"authentication" in effective.rules`,
		"the keys of an object":               `effective.rules.all(k, k != "x")`,
		"keys and values of an object":        `effective.rules.all(k, v, k != "x" || v == 1)`,
		"the size of an object":               `size(effective.rules) == effective.rules.size()`,
		"two objects":                         `effective.rules == effective.limits.a`,
		"an object and a literal map":         `effective.rules != {}`,
		"an object or an empty map":           `(has(effective.rules) ? effective.rules : {}) == {}`,
		"a whole number that is a fraction":   `effective.limits.a.ratio == 1 && effective.limits.a.max == 1.0`,
		"a whole number among fractions":      `1 in effective.limits.a.bounds`,
		"numbers of two sorts compared":       `effective.limits.a.ratio > 1 && effective.limits.a.max < 1.5`,
		"null where the schema has none":      `effective.limits.a.unit != null && effective.limits.a.max != null`,
		"no policy before":                    `before == null || before.limits.a.max == 1`,
		"int or string":                       `effective.limits.a.size == 5 || effective.limits.a.size == "5"`,
		"what may be null":                    `effective.limits.a.maybe == null || effective.limits.a.maybe == "a"`,
		"unknown fields":                      `effective.free.anything.at.all > 1`,
		"any properties":                      `effective.open.anything.at.all > 1`,
		"no type at all":                      `effective.untyped.x > 1 && effective.untyped == "5"`,
		"a list of anything":                  `effective.loose[0].x == 1`,
		"a duration that is made of a text":   `duration(effective.limits.a.window) < duration("5s")`,
		"a text that is matched":              `effective.limits.all(k, l, l.unit.matches("^s$"))`,
		"origins":                             `origins.all(k, o, o.block != "overrides" || o.namespace == "infra")`,
		"a path":                              `path.route.labels.team == "a" && path.listener.port == 80 && has(path.gateway)`,
		"a request":                           `"admins" in request.userInfo.groups && request.object.kind == "X"`,
		"the extra of a user":                 `request.userInfo.extra["a/b"][0] == "x"`,
		"a value or null":                     `(has(effective.limits.a.unit) ? effective.limits.a.unit : null) == null`,
		"a value or one of another type":      `(has(before.limits) ? effective.limits.a.max : "none") == "none"`,
		"what may be null and is no object":   `(effective.limits.a.maybe != null ? effective.limits.a.maybe : "").size() > 3`,
		"a branch whose types differ in JSON": `(effective.limits.a.enabled ? before : effective) != null`,
	}
	for name, expression := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := CompileValidation(expression)
			require.NoError(t, err)
			assert.NoError(t, v.CheckTypes(limits(t)))
		})
	}
}

func TestCheckTypesOfListOfSpecs(t *testing.T) {
	list := listSchema(*limits(t))
	v, err := CompileValidation(`effective.all(s, s.limitz == 1)`)
	require.NoError(t, err)
	require.ErrorContains(t, v.CheckTypes(&list), "undefined field 'limitz' of s")
	v, err = CompileValidation(`effective.all(s, s.limits.a.max == 1)`)
	require.NoError(t, err)
	require.NoError(t, v.CheckTypes(&list))
}

func TestCheckTypesOfMessages(t *testing.T) {
	m, err := CompileMessage(`"limit " + effective.limits.a.maks`)
	require.NoError(t, err)
	assert.EqualError(t, m.CheckTypes(limits(t)),
		`message "\"limit \" + effective.limits.a.maks" does not compile: 1:30: undefined field 'maks' of effective.limits.a`)
}
