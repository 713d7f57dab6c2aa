package spec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/explain"
)

const conflictingPolicy = `apiVersion: example.com/v1
kind: Another
metadata: {name: inherited, creationTimestamp: "2021-01-01T00:00:00Z"}
spec: {targetRef: {kind: Gateway, name: gateway}, %s: {attempts: 3, retries: [%q]}}
`

// "Direct Policies override Inherited Policies. […] Note also that it's not
// intended that Direct and Inherited Policies should overlap": the direct one
// wins, and both are reported.
func TestDirectPoliciesOverrideInheritedOnes(t *testing.T) {
	direct, inherited := api.PolicyKind{Group: "example.com", Kind: "Direct"}, api.PolicyKind{Group: "example.com", Kind: "Another"}
	for _, block := range []string{"defaults", "overrides"} {
		t.Run("inherited "+block, func(t *testing.T) {
			w := conflicting(t, block, "503")
			ours := api.EffectiveField{
				Field: "spec.rules[1].retryOn", Value: []any{"502"}, Block: "bare",
				From: &api.Ref{Group: "example.com", Kind: "Direct", Namespace: "default", Name: "direct"},
			}
			for kind, other := range map[api.PolicyKind]api.PolicyKind{direct: inherited, inherited: direct} {
				item := w.on(t, kind, "second")
				want := ours
				want.Rule, want.ConflictsWith = map[api.PolicyKind]string{direct: "retryOn", inherited: "retries"}[kind], []api.PolicyKind{other}
				assert.Contains(t, item.Route.Fields, want)
				assert.Equal(t, []any{"502"}, ruleOf(item)["retryOn"], "%s shows the route as it comes out", kind.Kind)
			}
			other := w.on(t, inherited, "second")
			assert.Equal(t, int64(3), ruleOf(other)["attempts"], "what the direct policy does not speak of is left alone")
			for _, f := range other.Route.Fields {
				assert.Equal(t, f.Rule == "retries", len(f.ConflictsWith) > 0, f.Field)
			}
		})
	}
	t.Run("where the direct policy is not, the inherited one holds", func(t *testing.T) {
		item := conflicting(t, "overrides", "503").on(t, inherited, "first")
		assert.Equal(t, []any{"503"}, ruleOf(item)["retryOn"])
		for _, f := range item.Route.Fields {
			assert.Empty(t, f.ConflictsWith, f.Field)
		}
	})
	t.Run("an equal value is no contest", func(t *testing.T) {
		w := conflicting(t, "overrides", "502")
		for _, kind := range []api.PolicyKind{direct, inherited} {
			for _, f := range w.on(t, kind, "second").Route.Fields {
				assert.Empty(t, f.ConflictsWith, f.Field)
			}
		}
	})
}

func conflicting(t *testing.T, block, value string) *world {
	t.Helper()
	w := read(t, fmt.Sprintf(conflictingPolicy, block, value), "gateway", "conflict")
	explain.ResolveConflicts(w.items, func(k api.PolicyKind) bool { return w.view.Kind(k).Class == api.Direct })
	return w
}

// on returns the effective policy of a kind on a rule of the one route.
func (w *world) on(t *testing.T, kind api.PolicyKind, rule string) api.EffectivePolicy {
	t.Helper()
	for _, item := range w.items {
		if item.PolicyKind == kind && item.Path[len(item.Path)-1].Section == rule {
			return item
		}
	}
	t.Fatalf("no path of a %s to rule %s", kind, rule)
	return api.EffectivePolicy{}
}
