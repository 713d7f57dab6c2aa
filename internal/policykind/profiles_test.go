package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

func TestBuiltinKinds(t *testing.T) {
	kinds := policykind.BuiltinKinds()
	require.NotEmpty(t, kinds)
	for i, k := range kinds {
		assert.Equal(t, policykind.Builtin, k.Source)
		assert.Same(t, k, policykind.BuiltinKind(k.Ref()))
		assert.Empty(t, k.Name, "there is no such object in a cluster")
		if i > 0 {
			assert.Negative(t, api.ComparePolicyKinds(kinds[i-1].Ref(), k.Ref()), "sorted, each once: %s", k.Ref())
		}
	}
	for _, name := range []string{"AuthPolicy", "RateLimitPolicy"} {
		k := builtin(t, name)
		assert.Equal(t, api.Inherited, k.Class)
		assert.Equal(t, api.Hierarchical, k.SameTarget)
	}
}

func TestProfileRef(t *testing.T) {
	p := &policykind.Profile{}
	p.Name = "mine"
	assert.Equal(t, api.Ref{Group: "overrule.dev", Kind: "PolicyProfile", Name: "mine"}, p.Ref())
}
