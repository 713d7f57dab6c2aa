//go:build integration

package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/env"
)

func paintProfileAs(class api.ProfileClass) *policykind.Profile {
	p := &policykind.Profile{}
	p.Name = "paints"
	p.Spec = api.PolicyProfileSpec{
		Group: "policies.example.com", Kind: "Paint", Class: class, Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
	}
	return p
}

// rereads tests View.WithKindChange with a Watcher that reads Paint by its profile.
func rereads(t *testing.T, r *running) {
	t.Helper()
	v, _ := r.store.View()
	inherited, direct := paintProfileAs(api.Inherited), paintProfileAs(api.Direct)
	got, err := v.WithKindChange(inherited, inherited)
	require.NoError(t, err)
	assert.Equal(t, v.Kinds(), got.Kinds())

	got, err = v.WithKindChange(inherited, direct)
	require.NoError(t, err)
	assert.Nil(t, got.Get(redRef))
	require.Len(t, got.Unlisted(), 1)
	assert.Equal(t, api.Direct, got.Unlisted()[0].Class)
	assert.Equal(t, api.Inherited, v.Get(redRef).(*policykind.Policy).Kind.Class, "the original view is not changed")

	got, err = v.WithKindChange(inherited, nil)
	require.NoError(t, err)
	assert.Nil(t, got.Kind(redRef.PolicyKind()))
	assert.Nil(t, got.Get(redRef))

	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, r.clients.definitions.Get().Resource(sourceDefinitions).Name("paints.policies.example.com").Do(t.Context()).Into(&crd))
	got, err = v.WithKindChange(&policykind.Definition{CustomResourceDefinition: crd}, nil)
	require.NoError(t, err)
	assert.Nil(t, got.Get(redRef))
}

const redOnly = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyConstraint
metadata: {name: red-only, namespace: app}
spec:
  policyKind: {group: policies.example.com, kind: Paint}
  rules: [{path: color, enum: [red]}]
`

// constraintsComeAndGo starts and ends without constraints.
func constraintsComeAndGo(t *testing.T, e *env.Env, r *running) {
	t.Helper()
	held := func() int {
		v, _ := r.store.View()
		return len(v.Constraints(redRef.PolicyKind()))
	}
	soon(t, func() bool { return e.Apply(redOnly).Code == 0 }, "constraints are not served")
	soon(t, func() bool { return held() == 1 }, "the constraint is not in force")
	require.Len(t, r.ConstraintStatuses(), 1)
	assert.NoError(t, r.ConstraintStatuses()[0].Invalid)
	assert.True(t, r.ConstraintStatuses()[0].Installed)
	v, problems, err := List(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Len(t, v.Constraints(redRef.PolicyKind()), 1, "the CLI reads it, too")
	must(t, e.Kubectl("delete", "policyconstraint", "red-only", "-n", "app"))
	soon(t, func() bool { return held() == 0 }, "the deleted constraint is still in force")
}
