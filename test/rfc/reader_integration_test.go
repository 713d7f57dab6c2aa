//go:build integration

package rfc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/ratelimit"
)

// lenient are the limits that the schema refuses and that are read all the same,
// since what they mean is plain: of headers and parameters of one name the first
// counts in Gateway API, and the case of a hostname does not matter.
var lenient = []string{"of the same header twice", "of the same query parameter twice", "for a hostname in capitals"}

// Files are read without the schema, and so are policies that are written as v1.
func TestLimitsAreReadAsTheSchemaHasThem(t *testing.T) {
	for _, table := range []map[string]invalid{badLimits, badConditions, badTriggers} {
		for name, c := range table {
			t.Run("refuses a limit "+name, func(t *testing.T) {
				limit, errs := ratelimit.Read(field.NewPath("l"), "l", decoded(t, c.written))
				if slices.Contains(lenient, name) {
					assert.Empty(t, errs)
					return
				}
				assert.NotEmpty(t, errs)
				assert.Nil(t, limit)
			})
		}
	}
	for name, written := range goodLimits {
		t.Run("accepts a limit "+name, func(t *testing.T) {
			limit, errs := ratelimit.Read(field.NewPath("l"), "l", decoded(t, written))
			assert.Empty(t, errs)
			assert.NotNil(t, limit)
		})
	}
}

func decoded(t *testing.T, written string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(written))
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	return value
}
