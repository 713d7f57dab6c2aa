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

// lenient are limits that the schema rejects and the reader accepts, since their
// meaning is clear: of headers and parameters with the same name Gateway API uses
// the first, and hostnames are case-insensitive.
var lenient = []string{"of the same header twice", "of the same query parameter twice", "for a hostname in capitals"}

// Files, and policies that are written as v1, are read without the schema.
func TestLimitsAreReadAsTheSchemaHasThem(t *testing.T) {
	for name, c := range rejectedLimits(t) {
		t.Run("refuses a limit "+name, func(t *testing.T) {
			_, errs := new(ratelimit.Budget).Validate(field.NewPath("l"), "l", decoded(t, c.Limit))
			if slices.Contains(lenient, name) {
				assert.Empty(t, errs)
				return
			}
			assert.NotEmpty(t, errs)
		})
	}
	for name, written := range acceptedLimits(t) {
		t.Run("accepts a limit "+name, func(t *testing.T) {
			limit, errs := new(ratelimit.Budget).Validate(field.NewPath("l"), "l", decoded(t, written))
			assert.Empty(t, errs)
			assert.NotNil(t, ratelimit.Decode("l", limit))
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
