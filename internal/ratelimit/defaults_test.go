package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"

	"overrule.dev/overrule/test/tables"
)

// The defaults of the RFC and of Gateway API are set, and nothing else.
func TestDefaulted(t *testing.T) {
	for name, c := range tables.Read[map[string]struct{ Limit, Want string }](t, "testdata/tables/defaulted.yaml") {
		t.Run(name, func(t *testing.T) {
			given, _ := decoded(t, c.Limit).(map[string]any)
			before := runtime.DeepCopyJSON(given)
			got := withDefaults(given)
			assert.Equal(t, decoded(t, c.Want), got)
			assert.Equal(t, before, given, "the value is not edited")
			assert.Equal(t, got, withDefaults(got), "once more changes nothing")
		})
	}
}

// The default duration is an int64, as in a decoded object.
func TestDefaultedDurationIsInteger(t *testing.T) {
	got := withDefaults(map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "day"}}})
	assert.Equal(t, map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "day", "duration": int64(1)}}}, got)
}
