package gateway_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

func TestBackends(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Refs string
		Want []gateway.Backend
	}](t, "testdata/tables/backends.yaml")
	for name, test := range tests {
		for _, kind := range gateway.RouteKinds {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				r := route(t, kind, "metadata: {namespace: app, name: r}\nspec: {rules: [{}, {backendRefs: "+test.Refs+"}]}")
				require.Len(t, r.Rules, 2)
				assert.Empty(t, r.Rules[0].Backends)
				assert.Equal(t, test.Want, r.Rules[1].Backends)
			})
		}
	}
}

// A Service can be a parent, too (mesh).
func TestParents(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Refs string
		Want []gateway.Parent
	}](t, "testdata/tables/parents.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.Want, routing(t, "app", "{parentRefs: "+test.Refs+"}").Parents)
		})
	}
	p := gateway.Parent{Kind: "Service", Namespace: "app", Name: "s", Port: 80}
	assert.True(t, p.Is("Service", "app", "s"), "whatever the port")
	assert.False(t, p.Is("Gateway", "app", "s"))
	assert.False(t, p.Is("Service", "shop", "s"))
	assert.False(t, p.Is("Service", "app", "t"))
}

// The ports of a Service that is a parent of a route.
func TestPortsOf(t *testing.T) {
	for name, test := range tables.Read[map[string]struct {
		Refs string
		Want []int32
	}](t, "testdata/tables/ports-of.yaml") {
		service := &gateway.Service{Namespace: "app", Name: "s", Ports: []gateway.Port{{Name: "h", Number: 80}, {Number: 81}}}
		assert.Equal(t, test.Want, routing(t, "app", "{parentRefs: "+test.Refs+"}").PortsOf(service), name)
	}
}

func TestMemoize(t *testing.T) {
	r, made := routing(t, "app", "{}"), 0
	remember := func(key, value string) any {
		return r.Memoize(key, func() any { made++; return value })
	}
	assert.Equal(t, "first", remember("a", "first"))
	assert.Equal(t, "first", remember("a", "second"), "it is made once")
	assert.Equal(t, "third", remember("b", "third"), "each key has its own")
	assert.Equal(t, 2, made)
	assert.Equal(t, "other", routing(t, "app", "{}").Memoize("a", func() any { return "other" }), "and each route")
}

// Annotations that only tools read are dropped: they can be long.
func TestAnnotations(t *testing.T) {
	tests := map[string]struct {
		annotations string
		want        map[string]string
	}{
		"others are kept":             {"{a: b, example.com/strategy: merge}", map[string]string{"a": "b", "example.com/strategy": "merge"}},
		"kubectl's is left out":       {"{a: b, kubectl.kubernetes.io/last-applied-configuration: '{}'}", map[string]string{"a": "b"}},
		"Overrule's own are left out": {"{overrule.dev/effective-policy: '{}', overrule.dev/outcome: '{}'}", nil},
		"none":                        {"{}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, httpRoute(t, "metadata: {name: r, annotations: "+test.annotations+"}").Annotations)
		})
	}
}

// Profiles refer to fields that are not known in advance: the spec is kept, with the
// defaults of the API server.
func TestRouteSpec(t *testing.T) {
	r := routing(t, "app", "{hostnames: [A.example.com], rules: [{timeouts: {request: 1s}, retry: {attempts: 9007199254740993, backoff: 1.5}, x-own: [{deep: null}]}]}")
	want := map[string]any{
		"hostnames": []any{"A.example.com"}, // as it stands
		"rules": []any{map[string]any{
			"timeouts": map[string]any{"request": "1s"},
			"retry":    map[string]any{"attempts": int64(9007199254740993), "backoff": 1.5},
			"x-own":    []any{map[string]any{"deep": nil}},
			"matches":  []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
		}},
	}
	var wait sync.WaitGroup
	for range 4 { // views are read side by side
		wait.Go(func() { assert.Equal(t, want, r.Spec()) })
	}
	wait.Wait()
}

// SEMANTICS section 7: a verdict does not depend on the entry point.
func TestRouteSpecIsDefaulted(t *testing.T) {
	slash := map[string]any{"type": "PathPrefix", "value": "/"}
	everything := []any{map[string]any{"path": slash}}
	for name, test := range map[string]struct {
		route *gateway.Route
		want  []any
	}{
		"a route without a spec":   {httpRoute(t, "metadata: {name: r}"), []any{map[string]any{"matches": everything}}},
		"a rule without matches":   {routing(t, "app", "{rules: [{name: x}]}"), []any{map[string]any{"name": "x", "matches": everything}}},
		"no matches, written out":  {routing(t, "app", "{rules: [{matches: []}]}"), []any{map[string]any{"matches": []any{}}}},
		"rules that are no object": {routing(t, "app", "{rules: [null]}"), []any{nil}},
		"what is set stays": {
			routing(t, "app", "{rules: [{matches: [{path: {type: Exact, value: /a}, headers: [{name: h, type: RegularExpression}], queryParams: [{name: q}]}]}]}"),
			[]any{map[string]any{"matches": []any{map[string]any{
				"path":        map[string]any{"type": "Exact", "value": "/a"},
				"headers":     []any{map[string]any{"name": "h", "type": "RegularExpression"}},
				"queryParams": []any{map[string]any{"name": "q", "type": "Exact"}},
			}}}},
		},
		"backends": {
			routing(t, "app", "{rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: s, port: 80}, {name: t, kind: Backend, group: x.y, weight: 0}]}]}"),
			[]any{map[string]any{"matches": everything, "backendRefs": []any{
				map[string]any{"name": "s", "port": int64(80), "group": "", "kind": "Service", "weight": int64(1)},
				map[string]any{"name": "t", "group": "x.y", "kind": "Backend", "weight": int64(0)},
			}}},
		},
		"a GRPCRoute's rule has no match of its own": {
			grpcRoute(t, "metadata: {name: r}\nspec: {rules: [{}, {matches: [{method: {service: s}}]}]}"),
			[]any{map[string]any{}, map[string]any{"matches": []any{map[string]any{"method": map[string]any{"service": "s", "type": "Exact"}}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, _ := test.route.Spec().(map[string]any)
			assert.Equal(t, test.want, spec["rules"])
		})
	}
}

func TestInvalidRoutes(t *testing.T) {
	for name, text := range map[string]string{
		"rules that are no list":     "{rules: 5}",
		"a parentRef that is none":   "{parentRefs: [a]}",
		"a port that is no number":   "{rules: [{backendRefs: [{name: s, port: http}]}]}",
		"a hostname that is no text": "{hostnames: [1]}",
		"a spec that is no object":   "[]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gateway.FromRoute(gateway.KindHTTPRoute, read[gateway.RouteObject](t, "metadata: {name: r}\nspec: "+text))
			require.ErrorContains(t, err, "spec: json: cannot unmarshal")
		})
	}
	t.Run("fields in another case are others", func(t *testing.T) {
		assert.Empty(t, routing(t, "app", "{Rules: [{}, {}], Hostnames: [a]}").Hostnames)
		assert.Len(t, routing(t, "app", "{Rules: [{}, {}]}").Rules, 1, "the one of a route without rules")
	})
}

// SEMANTICS section 5: a rule without a name is shown as rule-N.
func TestSections(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Rules   string
		Shown   []string
		Section string
		Means   []int
	}](t, "testdata/tables/sections.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := ruled(t, test.Rules)
			var shown []string
			var means []int
			for i := range r.Rules {
				shown = append(shown, r.RuleName(i))
				if r.RuleAt(test.Section, i) {
					means = append(means, i)
				}
			}
			assert.Equal(t, test.Shown, shown)
			assert.Equal(t, test.Means, means)
			assert.Equal(t, test.Means != nil, r.HasSection(test.Section))
		})
	}
}

func TestSameRoute(t *testing.T) {
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
		got, err := gateway.ReadRoute(kind, []byte(text), r, gateway.Newest)
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
