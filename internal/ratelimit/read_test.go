package ratelimit

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/test/tables"
)

// decoded decodes YAML to JSON values like the API server.
func decoded(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	value, err := decode.Value(data)
	require.NoError(t, err)
	return value
}

// read validates and decodes a limit. The errors are sorted.
func read(at *field.Path, name string, value any) (*Limit, field.ErrorList) {
	defaulted, errs := new(Budget).Validate(at, name, value)
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, errs
	}
	return Decode(name, defaulted), nil
}

var at = field.NewPath("spec", "limits").Key("a")

func TestReadLimits(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Text string
		Want Limit
	}](t, "testdata/tables/read-limits.yaml") {
		t.Run(name, func(t *testing.T) {
			c.Want.Name = "a"
			got, errs := read(at, "a", decoded(t, c.Text))
			assert.Empty(t, errs)
			for _, trigger := range got.Triggers {
				for m := range trigger.Matches {
					trigger.Matches[m].Criteria = nil // the random worlds hold these
				}
			}
			assert.Equal(t, &c.Want, got)
		})
	}
}

func TestSecondsOfARate(t *testing.T) {
	assert.Equal(t, int64(43200), Rate{Duration: 12, Unit: "hour"}.Seconds()) // example 2
	assert.Equal(t, int64(86400), Rate{Duration: 1, Unit: "day"}.Seconds())   // example 7
	assert.Equal(t, int64(60), Rate{Duration: 1, Unit: "minute"}.Seconds())
	assert.Equal(t, int64(9223372036854720000), Rate{Duration: 106751991167300, Unit: "day"}.Seconds())
}

func TestIsRateLimit(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Text string
		Want bool
	}](t, "testdata/tables/is-rate-limit.yaml") {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.Want, IsRateLimit(decoded(t, c.Text))) })
	}
}
