package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// place is a block of a policy on a level, which may set a value.
type place struct{ level, block string }

func (p place) String() string { return p.level + " " + p.block }

// name returns the name of a policy with only this block.
func (p place) name() string { return strings.ToLower(p.level + "-" + p.block) }

// ranking returns the places of a hierarchy from the strongest to the weakest: "A
// override > B override > C override > C default > B default > A default".
func ranking(levels []string) []place {
	var out []place
	for _, l := range levels {
		out = append(out, place{l, "override"})
	}
	for _, l := range slices.Backward(levels) {
		out = append(out, place{l, "default"})
	}
	return out
}

// subsets returns all subsets of places in their order, the empty one first.
func subsets(of []place) [][]place {
	out := make([][]place, 1<<len(of))
	for i := range out {
		for j, p := range of {
			if i&(1<<j) != 0 {
				out[i] = append(out[i], p)
			}
		}
	}
	return out
}

// hierarchy is a hierarchy of a kind, and how its policies are written.
type hierarchy struct {
	levels   []string
	strategy string
	cluster  bool // the policies are cluster-scoped
	together bool // one policy has both blocks of a level
}

func (l hierarchy) manifests(places []place) string {
	scope, from := "Namespaced", `["*"]`
	if l.cluster {
		scope, from = "Cluster", "[]"
	}
	out := fmt.Sprintf(stepKind, strings.Join(l.levels, ", "), l.strategy, from, scope)
	if !l.together {
		for _, p := range places {
			out += l.policy(p.name(), p.level, p)
		}
		return out
	}
	for _, level := range l.levels {
		var blocks []place
		for _, p := range places {
			if p.level == level {
				blocks = append(blocks, p)
			}
		}
		if len(blocks) > 0 {
			out += l.policy(strings.ToLower(level), level, blocks...)
		}
	}
	return out
}

const stepKind = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: steps}
spec:
  group: example.com
  kind: Step
  class: inherited
  levels: [%s]
  strategy: {allowed: [%s]}
  targets: {fields: [targetRef], classFrom: %s}
  blocks: {defaults: [default], overrides: [override]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: steps.example.com}
spec: {group: example.com, scope: %s, names: {kind: Step, plural: steps, singular: step}}
`

// policy writes a policy. The creation times are in the reverse order of the
// hierarchy, so that precedence by age would give the opposite result.
func (l hierarchy) policy(name, level string, blocks ...place) string {
	target := map[string]string{
		"GatewayClass": "{kind: GatewayClass, name: example}",
		"Gateway":      "{kind: Gateway, name: gateway, namespace: default}",
		"Route":        "{kind: HTTPRoute, name: route, namespace: default}",
		"Rule":         "{kind: HTTPRoute, name: route, namespace: default, sectionName: rule}",
	}[level]
	out := fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Step\nmetadata: {name: %s, creationTimestamp: \"2021-07-15T01:%02d:00Z\"}\nspec:\n  targetRef: %s\n",
		name, 10-slices.Index(l.levels, level), target)
	for _, b := range blocks {
		out += fmt.Sprintf("  %s: {value: %s}\n", b.block, b.name())
	}
	return out
}

// "A override > B override > C override > C default > B default > A default", for
// every subset of them.
func TestHierarchyOfDefaultsAndOverrides(t *testing.T) {
	three := []string{"Gateway", "Route", "Rule"}
	four := append([]string{"GatewayClass"}, three...)
	for name, l := range map[string]hierarchy{
		"three levels, atomic":                          {levels: three, strategy: "atomic"},
		"three levels, patch":                           {levels: three, strategy: "patch"},
		"three levels, atomic, both blocks in one":      {levels: three, strategy: "atomic", together: true},
		"three levels, patch, both blocks in one":       {levels: three, strategy: "patch", together: true},
		"with the class, by namespaced policies":        {levels: four, strategy: "patch"},
		"with the class, by cluster-scoped policies":    {levels: four, strategy: "atomic", cluster: true},
		"with the class, cluster-scoped, blocks in one": {levels: four, strategy: "patch", cluster: true, together: true},
	} {
		t.Run(name, func(t *testing.T) {
			all := subsets(ranking(l.levels))
			for _, places := range all {
				t.Run(title(places), func(t *testing.T) { l.check(t, places) })
			}
			t.Logf("%d subsets", len(all))
		})
	}
}

func title(places []place) string {
	var out []string
	for _, p := range places {
		out = append(out, p.String())
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, " over ")
}

// check asserts that the first place wins, and that the others have no effect.
func (l hierarchy) check(t *testing.T, places []place) {
	t.Helper()
	w := read(t, l.manifests(places), "gateway", "hierarchy")
	item := w.at(t, "gateway > route")
	if len(places) == 0 {
		assert.Equal(t, obj{}, item.Spec)
		return
	}
	winner := places[0]
	assert.Equal(t, obj{"value": winner.name()}, item.Spec)
	assert.Equal(t, winner.block+"s", item.Rules[0].Block)
	for name, o := range w.outcomes {
		want := api.Overridden
		if name == item.Rules[0].From.Name {
			want = api.Enforced
		}
		assert.Equal(t, want, o.State, name)
	}
}

// "Attaching Policy to GatewayClass": a policy there must be cluster-scoped.
func TestGatewayClassTakesClusterScopedPoliciesOnly(t *testing.T) {
	l := hierarchy{levels: []string{"GatewayClass", "Gateway", "Route", "Rule"}, strategy: "patch"}
	onClass := []place{{"GatewayClass", "override"}}
	w := read(t, strings.Replace(l.manifests(onClass), `classFrom: ["*"]`, "classFrom: []", 1), "gateway", "hierarchy")
	assert.Equal(t, obj{}, w.at(t, "gateway > route").Spec)
	assert.Equal(t, api.TargetNotFound, w.outcomes[onClass[0].name()].State)
}
