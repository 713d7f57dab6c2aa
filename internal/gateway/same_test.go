package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/gateway"
)

func TestRoutesThatReadTheSame(t *testing.T) {
	read := func(kind, text string) *gateway.Route {
		var o gateway.RouteObject
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		r, err := gateway.FromRoute(kind, &o)
		require.NoError(t, err)
		return r
	}
	const text = `{"metadata": {"namespace": "app", "name": "r", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"rules": [{"name": "x"}]}}`
	r := read("HTTPRoute", text)
	assert.True(t, r.Same(read("HTTPRoute", text)))
	assert.True(t, r.Same(read("HTTPRoute", `{"status": {}, `+text[1:])), "a status is not read")
	assert.False(t, r.Same(read("GRPCRoute", text)))
	again := func(kind, text string) *gateway.Route {
		got, err := gateway.ReadRoute(kind, []byte(text), r)
		require.NoError(t, err)
		assert.True(t, got.Same(read(kind, text)), text)
		return got
	}
	assert.Same(t, r, again("HTTPRoute", text), "it is not read again")
	assert.Same(t, r, again("HTTPRoute", `{"status": {}, `+text[1:]), "nor for a status")
	assert.NotSame(t, r, again("GRPCRoute", text))
	for _, other := range []string{
		`{"metadata": {"namespace": "app", "name": "s", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"rules": [{"name": "x"}]}}`,
		`{"metadata": {"namespace": "zoo", "name": "r", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"rules": [{"name": "x"}]}}`,
		`{"metadata": {"namespace": "app", "name": "r", "labels": {"a": "c"}, "annotations": {"c": "d"}}, "spec": {"rules": [{"name": "x"}]}}`,
		`{"metadata": {"namespace": "app", "name": "r", "labels": {"a": "b"}}, "spec": {"rules": [{"name": "x"}]}}`,
		`{"metadata": {"namespace": "app", "name": "r", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"rules": [{"name": "z"}]}}`,
	} {
		assert.False(t, r.Same(read("HTTPRoute", other)), other)
		assert.NotSame(t, r, again("HTTPRoute", other))
	}
}
