package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/policykind"
)

func TestTargetFieldIsThatOfTheNamedTarget(t *testing.T) {
	set, err := manifest.FromObjects("a test", []map[string]any{{
		"apiVersion": "example.com/v1", "kind": "Own", "metadata": map[string]any{"name": "own"},
		"spec": map[string]any{"targetRefs": []any{map[string]any{"name": "a"}, map[string]any{"name": "aa"}, map[string]any{"name": "aa-b"}}},
	}})
	require.NoError(t, err)
	kind := &policykind.Kind{PolicyProfileSpec: api.PolicyProfileSpec{Targets: api.ProfileTargets{Fields: []string{"targetRefs"}}}}
	for name, c := range map[string]struct{ message, want string }{
		"a name of one letter is not found in words":    {"the target HTTPRoute app/aa does not exist", "spec.targetRefs[1]"},
		"a name is not found in longer ones":            {"HTTPRoute app/aa-b does not exist", "spec.targetRefs[2]"},
		"a name at the end":                             {"no HTTPRoute app/a", "spec.targetRefs[0]"},
		"a name before a section":                       {"HTTPRoute app/aa#http has no such listener", "spec.targetRefs[1]"},
		"a name after a part that is a longer one":      {"aaa and aa", "spec.targetRefs[1]"},
		"without a name the field with all targets":     {"no target is accepted", "spec.targetRefs"},
		"of several names the longest is what is meant": {"a target: HTTPRoute app/aa-b", "spec.targetRefs[2]"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, targetField(set.Objects[0], kind, c.message))
		})
	}
}
