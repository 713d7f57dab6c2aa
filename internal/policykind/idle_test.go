package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

// SEMANTICS section 3, a top-level gate beside blocks.
func TestGatesBesideBlocks(t *testing.T) {
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
				assert.Equal(t, test.idle, p.Idle)
			})
		}
	}
}
