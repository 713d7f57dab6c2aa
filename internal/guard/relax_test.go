package guard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

func TestRelaxedConstraints(t *testing.T) {
	const limit = "rules: [{path: a, max: 1}]"
	less := []string{"Warn RequirementUnmet ClusterPolicyConstraint c: 2 paths, HTTPRoute app/r rule-1, Gateway infra/g, HTTPRoute app/r rule-2"}
	was := readConstraint(t, limit)
	definition := &policykind.Definition{}
	definition.Name, definition.Spec.Group, definition.Spec.Names.Kind = "clusterpolicyconstraints.overrule.dev", api.Group, "ClusterPolicyConstraint"
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}}
	gone := guard.Change{Operation: guard.Delete, Before: was}
	edited := func(spec string) guard.Change {
		return guard.Change{Operation: guard.Update, Before: was, After: readConstraint(t, spec)}
	}
	owned := edited(limit)
	owned.Owner = "ConfigMap infra/x"
	elsewhere := guard.Change{Operation: guard.Update, Before: was, After: readConstraintOf(t, "c", "Missing", limit)}
	for name, c := range map[string]struct {
		change guard.Change
		world  string
		want   []string
	}{
		"it is deleted":                  {gone, base(), less},
		"it is edited":                   {edited("rules: [{path: a, max: 2}]"), base(), less},
		"it gets an owner":               {owned, base(), less},
		"its definition is deleted":      {guard.Change{Operation: guard.Delete, Before: definition}, base(), less},
		"it is of a kind that is absent": {elsewhere, base(), less},
		"it demands more":                {edited("rules: [{path: a, max: 1}, {path: b, max: 1}]"), base(), nil},
		"it is on no path":               {gone, docs(gatewayDoc("g", "istio", "http")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, c.world)
			g := &guard.Guard{Engine: effective.NewEngine()}
			ev, err := g.Evaluate(t.Context(), v.With(snapshot.Put(was)), c.change, nil)
			require.NoError(t, err)
			assert.False(t, ev.Denied())
			assert.Equal(t, c.want, findingsOf(t, ev, "RequirementUnmet"))
		})
	}
}

func TestRelaxedConstraintWithTooManyPaths(t *testing.T) {
	was := readConstraint(t, "rules: [{path: a, max: 1}]")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	v := world(t, base())
	g := &guard.Guard{Engine: effective.NewEngine()}
	ev, err := g.Evaluate(ended, v.With(snapshot.Put(was)), guard.Change{Operation: guard.Delete, Before: was}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Warn RequirementUnmet ClusterPolicyConstraint c"}, findingsOf(t, ev, "RequirementUnmet"))
}
