package ratelimit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

func named(t *testing.T, kind, key, rules string) *gateway.Route {
	t.Helper()
	r := newGatewayRoute(t, kind, rules)
	_, err := fmt.Sscanf(key, "%1s/%s", &r.Namespace, &r.Name)
	assert.NoError(t, err)
	return r
}

func bindings(actions []api.GatewayAction) []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.Configurations[0].GenericKey.DescriptorValue)
	}
	return out
}

// Limits are ordered by the first rule that each is bound to, and rules by their routes,
// independent of the order of Add.
func TestRenderOrder(t *testing.T) {
	on := func(name, path string) *Limit {
		return readLimit(t, name, onlyFiveASecond+"triggers: [{matches: [{path: {value: "+path+"}}]}]")
	}
	rules := func(paths ...string) string {
		var out []any
		for _, p := range paths {
			out = append(out, map[string]any{"matches": []any{map[string]any{"path": map[string]any{"value": p}}}})
		}
		text, err := yaml.Marshal(out)
		assert.NoError(t, err)
		return string(must(yaml.YAMLToJSON(text)))
	}
	adds := []func(*Rendering){
		func(r *Rendering) {
			addAll(r, Source{"a/p", "bare"}, []*Limit{on("z", "/1"), on("b", "/2")}, named(t, gateway.KindHTTPRoute, "a/r", rules("/1", "/2")), "")
		},
		func(r *Rendering) {
			addAll(r, Source{"a/p", "bare"}, []*Limit{on("b", "/2")}, named(t, gateway.KindHTTPRoute, "a/s", rules("/2")), "")
		},
		func(r *Rendering) {
			addAll(r, Source{"b/p", "bare"}, []*Limit{on("a", "/1")}, named(t, gateway.KindHTTPRoute, "b/a", rules("/1")), "")
		},
		func(r *Rendering) {
			addAll(r, Source{"b/p", "bare"}, []*Limit{readLimit(t, "c", onlyFiveASecond)}, named(t, gateway.KindGRPCRoute, "b/a", "[{}]"), "")
		},
	}
	for range len(adds) {
		adds = append(adds[1:], adds[0])
		r := NewRendering(edge)
		for _, add := range adds {
			add(r)
		}
		actions, limits := r.Documents()
		want := []string{"a/p/z", "a/p/b", "b/p/c", "b/p/a"}
		assert.Equal(t, want, bindings(actions))
		assert.Equal(t, []api.GatewayRule{{Paths: []string{"/2*"}}, {Paths: []string{"/2*"}}}, actions[1].Rules, "on both routes")
		for i, l := range limits {
			assert.Equal(t, []string{`ratelimit.binding == "` + want[i] + `"`}, l.Conditions)
		}
	}
	for _, back := range []bool{false, true} {
		limits := []*Limit{readLimit(t, "a", onlyFiveASecond), readLimit(t, "b", onlyFiveASecond)}
		if back {
			slices.Reverse(limits)
		}
		r, route := NewRendering(edge), named(t, gateway.KindHTTPRoute, "a/r", "[{}]")
		for _, l := range limits { // of two listeners
			addAll(r, Source{"a/p", "bare"}, []*Limit{l}, route, "")
		}
		actions, _ := r.Documents()
		assert.Equal(t, []string{"a/p/a", "a/p/b"}, bindings(actions), "by their names on one rule")
	}
	r, route := NewRendering(edge), named(t, gateway.KindHTTPRoute, "a/r", "[{}]")
	addAll(r, Source{"a/p", "bare"}, []*Limit{readLimit(t, "b", onlyFiveASecond)}, route, "")
	addAll(r, Source{"b/p", "bare"}, []*Limit{readLimit(t, "a", onlyFiveASecond)}, route, "")
	addAll(r, Source{"a/o", "bare"}, []*Limit{readLimit(t, "b", onlyFiveASecond)}, route, "")
	actions, _ := r.Documents()
	assert.Equal(t, []string{"b/p/a", "a/o/b", "a/p/b"}, bindings(actions), "and then by those of their policies")
}

func must[T any](v T, _ error) T { return v }

// A policy may have a limit of the same name in two blocks, in force on different paths.
// Different ones must not be merged.
func TestRenderLimitsOfSameName(t *testing.T) {
	for name, c := range map[string]struct {
		overrides string
		want      []string
	}{
		"that differ":       {"rates: [{limit: 9, unit: second}]", []string{"a/p/l/defaults", "a/p/l/overrides"}},
		"that are the same": {onlyFiveASecond, []string{"a/p/l"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRendering(edge)
			addAll(r, Source{"a/p", "overrides"}, []*Limit{readLimit(t, "l", c.overrides)}, named(t, gateway.KindHTTPRoute, "a/s", "[{}]"), "")
			addAll(r, Source{"a/p", "defaults"}, []*Limit{readLimit(t, "l", onlyFiveASecond)}, named(t, gateway.KindHTTPRoute, "a/r", "[{}]"), "")
			actions, limits := r.Documents()
			assert.Equal(t, c.want, bindings(actions))
			assert.Len(t, limits, len(c.want))
		})
	}
}

// The result does not depend on which of two blocks with the same limit is added first.
func TestRenderNamesLimitByFirstBlock(t *testing.T) {
	for _, blocks := range [][]string{{"defaults", "bare"}, {"bare", "defaults"}} {
		r := NewRendering(edge)
		for i, block := range blocks {
			addAll(r, Source{"a/p", block}, []*Limit{readLimit(t, "l", onlyFiveASecond)}, named(t, gateway.KindHTTPRoute, "a/"+"rs"[i:i+1], "[{}]"), "")
		}
		addAll(r, Source{"a/p", "overrides"}, []*Limit{readLimit(t, "l", "rates: [{limit: 9, unit: second}]")}, named(t, gateway.KindHTTPRoute, "a/t", "[{}]"), "")
		actions, _ := r.Documents()
		assert.Equal(t, []string{"a/p/l/bare", "a/p/l/overrides"}, bindings(actions), blocks)
	}
}

func TestRenderNothing(t *testing.T) {
	actions, limits := NewRendering(edge).Documents()
	assert.Equal(t, []api.GatewayAction{}, actions)
	assert.Equal(t, []api.RenderedLimit{}, limits)
}
