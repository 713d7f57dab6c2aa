package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	p := spec(t, builtin(t, "RateLimitPolicy"), onRoute+`
unset: [limits.a, c]
remove: [b]
defaults: {limits: {d: {rates: [{limit: 1, window: 1s}]}, both: {rates: [{limit: 1, window: 1s}]}}}
overrides: {limits: {o: {rates: [{limit: 1, window: 1s}]}, "x.y": {rates: [{limit: 1, window: 1s}]}, both: {rates: [{limit: 1, window: 1s}]}}}
`)
	require.NoError(t, p.Invalid)
	for rule, want := range map[string]string{
		"limits.d":        "spec.defaults.limits.d",
		"limits.o":        "spec.overrides.limits.o",
		`limits["x.y"]`:   `spec.overrides.limits["x.y"]`,
		"limits.d.rates":  "spec.defaults.limits.d.rates",
		"limits.both":     "spec.overrides.limits.both",
		"limits.other":    "spec.overrides.limits.other",
		"rules":           "",
		"limits.d[0].max": "",
		"":                "",
	} {
		assert.Equal(t, want, p.RuleField(rule), rule)
		assert.Equal(t, want, p.Pack().RuleField(rule), rule)
	}
	for rule, want := range map[string]string{"limits.a": "spec.unset[0]", "limits.b": "spec.remove[0]", "limits.c": "spec.unset[1]", "limits.d": ""} {
		assert.Equal(t, want, p.UnsetField(rule), rule)
	}
	assert.Equal(t, "spec.targetRef", p.TargetsField())

	several := spec(t, compiled(t, nil), "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}, {group: gateway.networking.k8s.io, kind: Gateway, name: b}]")
	assert.Equal(t, "spec.targetRefs", several.TargetsField())
	assert.Equal(t, "spec.targetRefs[1]", several.TargetField(several.Targets[1].Ref, "", 0))
	assert.Equal(t, "spec.targetRef", builtin(t, "AuthPolicy").Read(map[string]any{"spec": map[string]any{"targetRef": true}}, 0).InvalidField())
}
