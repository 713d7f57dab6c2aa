package cel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"overrule.dev/overrule/test/tables"
)

// limits returns a schema with a value of each type.
func limits(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	s := tables.Read[apiextensionsv1.JSONSchemaProps](t, "testdata/limits-schema.yaml")
	return &s
}

func TestCheckTypesErrors(t *testing.T) {
	cases := tables.Read[map[string]struct {
		Expression string
		Want       []Problem
	}](t, "testdata/tables/check-types-errors.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := CompileValidation(c.Expression)
			require.NoError(t, err)
			var failed *CompileError
			require.ErrorAs(t, v.CheckTypes(limits(t)), &failed)
			assert.Equal(t, &CompileError{noun: "validation", Expression: c.Expression, Problems: c.Want}, failed)
			assert.NoError(t, v.CheckTypes(nil), "without a schema nothing is known")
		})
	}
}

// Operations that cel-go's checker rejects and that work on JSON are allowed.
func TestCheckTypesAllowsJSON(t *testing.T) {
	cases := tables.Read[map[string]string](t, "testdata/tables/check-types-allows-json.yaml")
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
