package ratelimit

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/messages"
)

const rate = "rates: [{limit: 1, unit: second}]\n"

// TestReadInvalidLimits reads the limits of testdata/invalid.yaml.
func TestReadInvalidLimits(t *testing.T) {
	data, err := os.ReadFile("testdata/invalid.yaml")
	require.NoError(t, err)
	var rows []struct {
		Name, Text string
		Want       []string
	}
	require.NoError(t, yaml.UnmarshalStrict(data, &rows))
	require.NotEmpty(t, rows)
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			limit, errs := read(at, "a", decoded(t, row.Text))
			assert.Nil(t, limit)
			assert.Equal(t, row.Want, messages.List(t, errs))
		})
	}
}

// repeated is a list of n items.
func repeated(item any, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item
	}
	return out
}

func TestReadTooLargeLimits(t *testing.T) {
	one := map[string]any{"limit": int64(1), "unit": "second"}
	condition := map[string]any{"selector": "auth.a", "operator": "exists"}
	trigger := func(field string, value any) []any { return []any{map[string]any{field: value}} }
	inMatch := func(field string, value any) []any { return trigger("matches", trigger(field, value)) }
	header := map[string]any{"name": "a", "value": "b"}
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		fields map[string]any
		want   []string
	}{
		"rates":      {map[string]any{"rates": repeated(one, 65)}, []string{"spec.limits[a].rates: Too many: 65"}},
		"counters":   {map[string]any{"counters": repeated("auth.a", 65)}, []string{"spec.limits[a].counters: Too many: 65"}},
		"conditions": {map[string]any{"when": repeated(condition, 65)}, []string{"spec.limits[a].when: Too many: 65"}},
		"triggers":   {map[string]any{"triggers": repeated(map[string]any{}, 65)}, []string{"spec.limits[a].triggers: Too many: 65"}},
		"matches":    {map[string]any{"triggers": trigger("matches", repeated(map[string]any{}, 65))}, []string{"spec.limits[a].triggers[0].matches: Too many: 65"}},
		"hostnames":  {map[string]any{"triggers": trigger("hostnames", repeated("a", 65))}, []string{"spec.limits[a].triggers[0].hostnames: Too many: 65"}},
		"headers":    {map[string]any{"triggers": inMatch("headers", repeated(header, 17))}, []string{"spec.limits[a].triggers[0].matches[0].headers: Too many: 17"}},
		"parameters": {map[string]any{"triggers": inMatch("queryParams", repeated(header, 17))}, []string{"spec.limits[a].triggers[0].matches[0].queryParams: Too many: 17"}},
		"a counter":  {map[string]any{"counters": []any{long(1025)}}, []string{"spec.limits[a].counters[0]: Too long"}},
		"a value": {map[string]any{"when": []any{map[string]any{"selector": "auth.a", "operator": "eq", "value": long(1025)}}},
			[]string{"spec.limits[a].when[0].value: Too long"}},
		"a path": {map[string]any{"triggers": inMatch("path", map[string]any{"value": "/" + long(1024)})},
			[]string{"spec.limits[a].triggers[0].matches[0].path.value: Too long"}},
		"a header": {map[string]any{"triggers": inMatch("headers", []any{map[string]any{"name": long(257), "value": long(4097)}})}, []string{
			"spec.limits[a].triggers[0].matches[0].headers[0].name: Too long",
			"spec.limits[a].triggers[0].matches[0].headers[0].value: Too long",
		}},
		"an expression of a header": {map[string]any{"triggers": inMatch("headers", []any{map[string]any{"name": "a", "value": long(1025), "type": "RegularExpression"}})},
			[]string{"spec.limits[a].triggers[0].matches[0].headers[0].value: Too long"}},
		"a parameter": {map[string]any{"triggers": inMatch("queryParams", []any{map[string]any{"name": "a", "value": long(1025)}})},
			[]string{"spec.limits[a].triggers[0].matches[0].queryParams[0].value: Too long"}},
		"a hostname": {map[string]any{"triggers": trigger("hostnames", []any{long(254)})},
			[]string{"spec.limits[a].triggers[0].hostnames[0]: Too long"}},
		"an unknown field, which is cut": {map[string]any{long(150): true},
			[]string{"spec.limits[a]." + long(100) + "…: Forbidden"}},
		"one that is cut between letters": {map[string]any{"a" + strings.Repeat("é", 60): true},
			[]string{"spec.limits[a].a" + strings.Repeat("é", 49) + "…: Forbidden"}},
		"a value that is cut": {map[string]any{"counters": []any{"x." + long(1000)}},
			[]string{`spec.limits[a].counters[0]: Invalid value: "x.` + long(98) + `…"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fields["rates"] == nil {
				c.fields["rates"] = []any{one}
			}
			limit, errs := read(at, "a", c.fields)
			assert.Nil(t, limit)
			assert.Equal(t, c.want, messages.List(t, errs))
		})
	}
}

func TestReadLargestLimits(t *testing.T) {
	condition := map[string]any{"selector": "auth.a", "operator": "eq", "value": strings.Repeat("a", 1024)}
	limit, errs := read(at, "a", map[string]any{
		"rates": repeated(map[string]any{"limit": int64(1), "unit": "second"}, 64), "when": repeated(condition, 64),
	})
	assert.Empty(t, errs)
	assert.Len(t, limit.Rates, 64)
	assert.Len(t, limit.When, 64)
}

func TestReadLimitName(t *testing.T) {
	text := strings.Repeat("a", 254)
	for name, c := range map[string]struct {
		name string
		want []string
	}{
		"an empty one":            {"", []string{`spec.limits[a]: Invalid value: ""`}},
		"one of spaces":           {" ", []string{`spec.limits[a]: Invalid value: " "`}},
		"one that is too long":    {text, []string{`spec.limits[a]: Invalid value: "` + text[:100] + `…"`}},
		"one with a line feed":    {"a\nb", []string{`spec.limits[a]: Invalid value: "a\nb"`}},
		"one with all the rest":   {`a "b"/c.d é`, nil},
		"one of the RFC":          {"toysOrAssetsPerUsername", nil},
		"one of the most letters": {text[1:], nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := read(at, c.name, decoded(t, rate))
			assert.Equal(t, c.want, messages.List(t, errs))
		})
	}
}
