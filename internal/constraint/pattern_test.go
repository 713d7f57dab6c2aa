package constraint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
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
	assert.Equal(t, []string{fmt.Sprintf("spec.rules[16].pattern: Invalid value: %q", one)}, messages.Fields(t, with(17, one)))
	long := strings.Repeat(one, 3)
	assert.Equal(t, []string{fmt.Sprintf("spec.rules[0].pattern: Invalid value: %q", long)}, messages.Fields(t, with(1, long)))
}
