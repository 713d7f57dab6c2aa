package printers

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// The items of a keyed list are in the order of their keys, by which rules name them.
func TestValuesOfKeyedLists(t *testing.T) {
	item := api.EffectivePolicy{
		Spec:  map[string]any{"spans": []any{map[string]any{"rate": 1}, map[string]any{"rate": 2}}, "list": []any{1}},
		Rules: []api.RuleOrigin{{Rule: "spans.IN.rate"}, {Rule: "spans.BOTH.rate"}, {Rule: "list"}},
	}
	assert.Equal(t, 1, valueOf(item, api.RuleOrigin{Rule: "spans.BOTH.rate"}))
	assert.Equal(t, 2, valueOf(item, api.RuleOrigin{Rule: "spans.IN.rate"}))
	assert.Equal(t, []any{1}, valueOf(item, api.RuleOrigin{Rule: "list"}))
	assert.Nil(t, valueOf(item, api.RuleOrigin{Rule: "spans.OUT.rate"}))
}
