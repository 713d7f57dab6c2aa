package cache

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// threeLimits is a RateLimitPolicy with three limits in its overrides.
func threeLimits(name string) *unstructured.Unstructured {
	u := policy("RateLimitPolicy", "app", name)
	limit := map[string]any{"rates": []any{map[string]any{"limit": int64(5), "window": "10s"}}}
	u.Object["spec"] = map[string]any{
		"targetRef": map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name},
		"overrides": map[string]any{
			"strategy": "merge", "limits": map[string]any{"c": limit, "a": limit, "b": limit},
		},
	}
	return u
}

func TestPolicyMemory(t *testing.T) {
	kind := policykind.BuiltinKind(api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"})
	decoded := func(name string) *policykind.Policy {
		o, err := policyDecoder(kind)(threeLimits(name))
		require.NoError(t, err)
		return o.(*policykind.Policy)
	}
	one, other := decoded("one"), decoded("other")
	assert.True(t, one.Same(kind.Read(threeLimits("one").Object, merge.Newest)), "it says the same")
	require.Len(t, one.Blocks, 1)
	require.Len(t, one.Blocks[0].Rules, 3)
	assert.Equal(t, 3, cap(one.Blocks[0].Rules), "a list has no room to grow")
	for i, r := range one.Blocks[0].Rules {
		text, same := r.Key.String(), other.Blocks[0].Rules[i].Key.String()
		assert.Equal(t, []string{"limits.a", "limits.b", "limits.c"}[i], text)
		assert.Equal(t, text, same)
		assert.Same(t, unsafe.StringData(text), unsafe.StringData(same), "policies share the text of %s", text)
	}
}
