package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

func keyOf(t testing.TB, text string) merge.Key {
	t.Helper()
	k, err := merge.ParseKey(text)
	require.NoError(t, err)
	return k
}

// A gate is at the path of the profile, or below it.
func TestIsGate(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) { p.Gates = []string{"when", "rules.*.enabled"} })
	for key, want := range map[string]bool{
		"when": true, "when.x": true, "whenever": false, "rules": false, "rules.when": false, "when-not": false,
		"rules.a.enabled": true, "rules.a.enabled.x": true, "rules.enabled": false, "rules.a": false, "rules.a.b.enabled": false,
	} {
		assert.Equal(t, want, k.IsGate(keyOf(t, key)), key)
	}
	assert.False(t, compiled(t, nil).IsGate(keyOf(t, "when")), "a profile that names none has none")
}

// An alternative is a member of a group: a field right below its path.
func TestAlternative(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) { p.Alternatives = []string{"rules.authentication", "deep.*.any"} })
	tests := map[string]struct{ group, member string }{
		"rules.authentication.a":        {"rules.authentication", "rules.authentication.a"},
		"rules.authentication.a.apiKey": {"rules.authentication", "rules.authentication.a"},
		`rules.authentication["a.b"]`:   {"rules.authentication", `rules.authentication["a.b"]`},
		"rules.authentication":          {},
		"rules.authorization.a":         {},
		"rules":                         {},
		"deep.x.any.a":                  {"deep.x.any", "deep.x.any.a"},
		"deep.y.any.a":                  {"deep.y.any", "deep.y.any.a"},
		"deep.x.all.a":                  {},
	}
	for key, want := range tests {
		t.Run(key, func(t *testing.T) {
			group, member, ok := k.Alternative(keyOf(t, key))
			assert.Equal(t, want.group != "", ok)
			assert.Equal(t, want.group, group.String())
			assert.Equal(t, want.member, member.String())
		})
	}
	_, _, ok := compiled(t, nil).Alternative(keyOf(t, "rules.authentication.a"))
	assert.False(t, ok, "a profile that names none has none")
}

// SEMANTICS section 3, gates outside blocks.
func TestGatesOutsideBlocks(t *testing.T) {
	const gate = `"when": [{"predicate": "false"}]`
	tests := map[string]struct {
		spec   string
		blocks []merge.Block
		idle   []string
	}{
		"alone":                       {gate, []merge.Block{merge.Bare}, nil},
		"beside rules":                {gate + `, "limits": {"a": {}}`, []merge.Block{merge.Bare}, nil},
		"beside defaults":             {gate + `, "defaults": {"limits": {"a": {}}}`, []merge.Block{merge.Defaults}, []string{"when"}},
		"beside overrides":            {gate + `, "overrides": {"limits": {"a": {}}}`, []merge.Block{merge.Overrides}, []string{"when"}},
		"beside an empty block":       {gate + `, "defaults": {}`, nil, []string{"when"}},
		"beside a block that is null": {gate + `, "defaults": null`, []merge.Block{merge.Bare}, nil},
		"beside rules and defaults":   {gate + `, "limits": {"b": {}}, "defaults": {"limits": {"a": {}}}`, []merge.Block{merge.Defaults, merge.Bare}, nil},
		"inside the overrides":        {`"overrides": {` + gate + `, "limits": {"a": {}}}`, []merge.Block{merge.Overrides}, nil},
	}
	for _, kind := range []string{"RateLimitPolicy", "TokenRateLimitPolicy"} {
		for name, test := range tests {
			t.Run(kind+" "+name, func(t *testing.T) {
				p := spec(t, builtin(t, kind), `{targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g}, `+test.spec+"}")
				require.NoError(t, p.Invalid)
				var blocks []merge.Block
				for _, b := range p.Blocks {
					blocks = append(blocks, b.Block)
				}
				assert.Equal(t, test.blocks, blocks)
				assert.Equal(t, test.idle, p.IgnoredGates)
			})
		}
	}
}
