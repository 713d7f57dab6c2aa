package constraint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestExpensivePatternsAreRejected(t *testing.T) {
	with := func(n int, pattern string) error {
		spec := api.ConstraintSpec{PolicyKind: api.ConstrainedKind{Group: "example.com", Kind: "Paint"}}
		for range n {
			spec.Rules = append(spec.Rules, api.ConstraintRule{Path: "a", Pattern: pattern})
		}
		return FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{Spec: spec}).Invalid
	}
	const one = "(?i)[b-\U0010fffe]"
	require.NoError(t, with(16, one))
	require.NoError(t, with(64, "^"+strings.Repeat("[a-z]", 200)+"$"))
	assert.ErrorContains(t, with(17, one), "spec.rules[16].pattern: Invalid value")
	assert.ErrorContains(t, with(17, one), "take too long to compile together; use fewer")
	assert.ErrorContains(t, with(1, strings.Repeat(one, 3)), "spec.rules[0].pattern: Invalid value")
}
