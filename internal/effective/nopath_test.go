package effective_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
)

// For kinds of every shape, each policy without a path has a specific reason. If paths
// go through its target, the reason is that they are of clients in other namespaces.
func TestNoPathAlwaysHasAReasonInRandomWorlds(t *testing.T) {
	reasons := 0
	for seed := range uint64(300) {
		w := newRandomWorld(t, newDice(seed))
		var sum explain.Outcomes
		paths := make(map[api.PolicyKind]map[api.Ref]bool) // what they go through
		require.NoError(t, effective.NewEngine().Walk(w.View, effective.Scope{All: true}, true, unlimited(), func(e *effective.Effective) error {
			sum.Add(e)
			if paths[e.Kind.Ref()] == nil {
				paths[e.Kind.Ref()] = make(map[api.Ref]bool)
			}
			for _, at := range e.Path.Elements() {
				paths[e.Kind.Ref()][api.Ref{Kind: at.Kind, Namespace: at.Namespace, Name: at.Name}] = true
			}
			return nil
		}))
		for _, k := range w.Kinds() {
			for p := range w.Policies(k.Ref()) {
				out := sum.Of(w.View, p)
				accepted := slices.IndexFunc(out.Targets, func(t api.Target) bool { return t.Accepted })
				if out.State != api.NoPath || accepted < 0 || p.Unread != "" || effective.NoLevelReason(p, out.Targets[accepted]) != "" {
					continue
				}
				reasons++
				at := out.Targets[accepted]
				require.NotContains(t, out.Message, "no path for policies", "seed %d: %s", seed, p.Ref())
				if out.Paths.NotRead == 0 && at.Section == "" && at.Port == 0 && paths[k.Ref()][api.Ref{Kind: at.Target.Kind, Namespace: at.Target.Namespace, Name: at.Target.Name}] {
					require.Contains(t, out.Message, "apply only to clients of that namespace", "seed %d: %s", seed, p.Ref())
				}
			}
		}
	}
	assert.Greater(t, reasons, 100)
}
