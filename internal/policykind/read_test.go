package policykind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

const onRoute = "targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}\n"

func TestReadBlocksAndRules(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Kind, Spec string
		Want       []string
	}](t, "testdata/tables/read-blocks-and-rules.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, builtin(t, test.Kind), onRoute+test.Spec)
			require.NoError(t, p.Invalid)
			assert.Equal(t, test.Want, blocksOf(p))
		})
	}
}

func TestReadUnset(t *testing.T) {
	p := spec(t, builtin(t, "RateLimitPolicy"), onRoute+`
unset: [limits.a, 'limits["x.y"]']
remove: [b]
`)
	require.NoError(t, p.Invalid)
	var names []string
	for _, n := range p.Unset {
		names = append(names, n.String())
	}
	assert.Equal(t, []string{"limits.a", `limits["x.y"]`, "b"}, names)
	assert.Empty(t, p.Blocks, "the list is not policy content")
}

// The error of a wrong type has its field path, and is the same each time.
func TestReadInvalid(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Kind, Spec string
		Want       []string
	}](t, "testdata/tables/read-invalid.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.Spec == "" {
				p := builtin(t, test.Kind).Read(object(t, "metadata: {namespace: app, name: p}"), created)
				assert.Equal(t, test.Want, messages.Fields(t, p.Invalid))
				return
			}
			first := spec(t, builtin(t, test.Kind), onRoute+test.Spec)
			assert.Equal(t, test.Want, messages.Fields(t, first.Invalid))
			for range 20 {
				p := spec(t, builtin(t, test.Kind), onRoute+test.Spec)
				require.EqualError(t, p.Invalid, first.Invalid.Error())
				assert.Len(t, p.Targets, 1, "its targets are known all the same")
			}
		})
	}
}

func TestReadMeta(t *testing.T) {
	k := builtin(t, "RateLimitPolicy")
	p := k.Read(object(t, "metadata: {namespace: app, name: p, creationTimestamp: '2024-05-01T10:00:00Z'}\nspec: {"+onRoute[:len(onRoute)-1]+"}"), created)
	require.NoError(t, p.Invalid)
	assert.Equal(t, api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "app", Name: "p"}, p.Ref())
	assert.Equal(t, time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC).Unix(), p.Created)

	p = spec(t, k, onRoute)
	assert.Equal(t, int64(created), p.Created, "one in flight has the time of the request")
	again := spec(t, k, onRoute)
	assert.NotEqual(t, p.Version, again.Version)

	now := time.Date(2024, 5, 1, 10, 0, 0, 999, time.UTC)
	assert.Equal(t, now.Truncate(time.Second).Unix(), policykind.InFlight(now))
}

func TestReadDoesNotEditObject(t *testing.T) {
	text := onRoute + "defaults: {strategy: merge, when: 'true', limits: {a: {}}}\nlimits: {b: {}}\nunset: [c]\n"
	o := object(t, "metadata: {namespace: app, name: p}")
	o["spec"] = object(t, text)
	builtin(t, "RateLimitPolicy").Read(o, created)
	assert.Equal(t, object(t, text), o["spec"])
}

// Kinds that allow patch: the rules are the leaves.
func TestReadLeaves(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) {
		p.Strategy = api.ProfileStrategy{Field: "strategy", BareField: "strategy", Allowed: []api.StrategyName{"patch", "atomic", "merge"}}
		p.Whole = []string{"labels", "cdn.*.headers"}
	})
	p := spec(t, k, onRoute+`
strategy: merge
colors: {dark: brown, light: {warm: 1, cold: [1, 2]}}
gone: null
empty: {}
labels: {a: b}
cdn: {x: {headers: {}, ttl: 5}}
named: {one: {v: 1}}
overrides: {ttl: 1}
`)
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{
		"bare merge",
		"  cdn.x.headers=map[]", "  cdn.x.ttl=5",
		"  colors.dark=brown", "  colors.light.cold=[1 2]", "  colors.light.warm=1",
		"  empty hollow", "  gone=<nil>", "  labels=map[a:b]", "  named.one.v=1",
		"overrides patch", "  ttl=1",
	}, blocksOf(p))
}

// The default strategy applies if the field is absent or null.
func TestDefaultStrategy(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) {
		p.Strategy = api.ProfileStrategy{Field: "strategy", Allowed: []api.StrategyName{"merge", "atomic"}}
	})
	p := spec(t, k, onRoute+"defaults: {a: 1}\noverrides: {strategy: null, a: 1}\nb: 1\nstrategy: content\n")
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{"defaults merge", "  a=1", "bare merge", "  b=1", "  strategy=content", "overrides merge", "  a=1"}, blocksOf(p))
}

func TestBlockWithTwoNames(t *testing.T) {
	k := compiled(t, nil)
	p := spec(t, k, onRoute+"default: {a: 1}\noverride: {b: {c: 1}}\n")
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{"defaults atomic", "  a=1", "overrides atomic", "  b=map[c:1]"}, blocksOf(p))

	p = spec(t, k, onRoute+"default: {a: 1}\ndefaults: {a: 2}\n")
	assert.Equal(t, []string{"spec.default: Forbidden"}, messages.Fields(t, p.Invalid))
}

func TestRulesAreSortedByKey(t *testing.T) {
	p := spec(t, builtin(t, "RateLimitPolicy"), onRoute+"limits: {c: {}, a-b: {}, a: {}, 'a.b': {}}\n")
	var keys []merge.Key
	for _, r := range p.Blocks[0].Rules {
		keys = append(keys, r.Key)
	}
	assert.Equal(t, []merge.Key{
		merge.KeyOf("limits", "a"), merge.KeyOf("limits", "a-b"), merge.KeyOf("limits", "a.b"), merge.KeyOf("limits", "c"),
	}, keys)
}

func TestPatternContinuesAfterWildcard(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) { p.Rules = []string{"zones.*.limits.*", "zones.eu.names"} })
	p := spec(t, k, onRoute+"zones: {eu: {limits: {a: 1, b: {c: 2}}, names: {x: 1}}, us: {names: {x: 1}}}\n")
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{
		"bare atomic", "  zones.eu.limits.a=1", "  zones.eu.limits.b=map[c:2]", "  zones.eu.names=map[x:1]", "  zones.us.names=map[x:1]",
	}, blocksOf(p))
}

func TestDerivedBlockThatIsNotAnObjectIsContent(t *testing.T) {
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "example.com", Kind: "Guess", Class: api.Inherited, Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
		Blocks: api.ProfileBlocks{Defaults: []string{"defaults", "default"}, Overrides: []string{"overrides", "override"}},
	}, policykind.Label)
	require.NoError(t, err)
	p := k.Read(map[string]any{"spec": map[string]any{"targetRef": map[string]any{"kind": "HTTPRoute", "name": "r"}, "default": int64(5), "overrides": []any{"id"}, "defaults": nil}}, 0)
	require.NoError(t, p.Invalid)
	require.Len(t, p.Blocks, 1)
	assert.Equal(t, merge.Bare, p.Blocks[0].Block)
	assert.Equal(t, []string{"default", "overrides"}, []string{p.Blocks[0].Rules[0].Key.String(), p.Blocks[0].Rules[1].Key.String()})
}
