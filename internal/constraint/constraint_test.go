package constraint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func TestFromPolicyConstraint(t *testing.T) {
	c := cluster(t, "enforcement: Warn\nvalidations: [{expression: 'true'}]")
	require.NoError(t, c.Invalid)
	assert.Equal(t, api.Ref{Group: "overrule.dev", Kind: "ClusterPolicyConstraint", Name: "c"}, c.Ref())
	assert.Equal(t, api.PolicyKind{Group: "example.com", Kind: "Paint"}, c.PolicyKind())
	assert.Equal(t, api.Warn, c.Enforcement)

	c = inApp(t, "validations: [{expression: 'true'}]")
	require.NoError(t, c.Invalid)
	assert.Equal(t, api.Ref{Group: "overrule.dev", Kind: "PolicyConstraint", Namespace: "app", Name: "c"}, c.Ref())
	assert.Equal(t, api.Deny, c.Enforcement, "unless it says otherwise")

	var inFile api.PolicyConstraint
	assert.Equal(t, "default", constraint.FromPolicyConstraint(&inFile).Ref().Namespace)

	assert.True(t, constraint.IsKind(c.Ref().PolicyKind()))
	assert.True(t, constraint.IsKind(constraint.ClusterKind))
	assert.False(t, constraint.IsKind(api.PolicyKind{Group: "example.com", Kind: "PolicyConstraint"}))
}

func TestInvalidConstraints(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Spec string
		Want []string
	}](t, "testdata/tables/invalid-constraints.yaml") {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.Want, messages.Fields(t, cluster(t, c.Spec).Invalid)) })
	}
	long := strings.Repeat("a.", 64) + "a"
	t.Run("an address that leads too deep", func(t *testing.T) {
		assert.Equal(t, []string{`spec.rules[0].path: Invalid value: "` + long + `"`}, messages.Fields(t, cluster(t, "rules: [{path: '"+long+"', required: true}]").Invalid))
	})
	t.Run("a huge pattern", func(t *testing.T) {
		huge := "rules: [{path: a, pattern: '" + strings.Repeat("a", 1025) + "'}]"
		assert.Equal(t, []string{"spec.rules[0].pattern: Too long"}, messages.Fields(t, cluster(t, huge).Invalid))
	})
}

func TestPolicyConstraintTargetsOwnNamespace(t *testing.T) {
	cases := map[string]struct {
		target string
		want   []string
	}{
		"its own, left out":     {"{kind: HTTPRoute, name: r}", nil},
		"its own, named":        {"{kind: HTTPRoute, namespace: app}", nil},
		"another":               {"{kind: HTTPRoute, namespace: infra}", []string{`spec.targets[0].namespace: Invalid value: "infra"`}},
		"its own Namespace":     {"{kind: Namespace, name: app}", nil},
		"another Namespace":     {"{kind: Namespace, name: infra}", []string{`spec.targets[0].name: Invalid value: "infra"`}},
		"a class is in none":    {"{kind: GatewayClass, name: istio}", []string{`spec.targets[0].kind: Invalid value: "GatewayClass"`}},
		"Namespaces by a label": {"{kind: Namespace, selector: {matchLabels: {team: a}}}", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, messages.Fields(t, inApp(t, "targets: ["+c.target+"]\nvalidations: [{expression: 'true'}]").Invalid))
		})
	}
}

func TestPolicyKindIsRequired(t *testing.T) {
	var o api.ClusterPolicyConstraint
	o.Spec.Rules = []api.ConstraintRule{{Path: "a", Required: true}}
	assert.Equal(t, []string{
		"spec.policyKind.group: Required value", "spec.policyKind.kind: Required value",
	}, messages.Fields(t, constraint.FromClusterPolicyConstraint(&o).Invalid))
}
