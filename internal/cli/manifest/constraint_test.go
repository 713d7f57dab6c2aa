package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/snapshot"
)

const authenticated = `
apiVersion: overrule.dev/v1alpha1
kind: KIND
metadata: {name: authenticated, namespace: app}
spec:
  policyKind: {group: kuadrant.io, kind: AuthPolicy}
  validations: [{EXPRESSION, message: every route is authenticated}]
`

func constrained(t *testing.T, kind, expression string) (*snapshot.View, error) {
	t.Helper()
	text := strings.NewReplacer("KIND", kind, "EXPRESSION", expression).Replace(authenticated)
	set, err := Read([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	kinds := NewKinds(nil)
	return set.View(kinds, "default")
}

func TestConstraintsAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		kind, expression string
		want             api.Ref
		invalid          bool
	}{
		"of a namespace": {
			"PolicyConstraint", `expression: "true"`, api.Ref{Group: api.Group, Kind: "PolicyConstraint", Namespace: "app", Name: "authenticated"}, false,
		},
		"of the cluster, which have no namespace": {
			"ClusterPolicyConstraint", `expression: "true"`, api.Ref{Group: api.Group, Kind: "ClusterPolicyConstraint", Name: "authenticated"}, false,
		},
		"that do not compile": {
			"PolicyConstraint", `expression: "1 +"`, api.Ref{Group: api.Group, Kind: "PolicyConstraint", Namespace: "app", Name: "authenticated"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := constrained(t, test.kind, test.expression)
			require.NoError(t, err)
			c, ok := v.Get(test.want).(*constraint.Constraint)
			require.True(t, ok)
			assert.Equal(t, api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}, c.PolicyKind())
			assert.Equal(t, test.invalid, c.Invalid != nil, c.Invalid)
		})
	}
}

// Unknown fields of constraints are errors.
func TestConstraintsAreStrict(t *testing.T) {
	for name, test := range map[string]struct{ expression, want string }{
		"an unknown field":        {`expresion: "true"`, `is invalid: unknown field "spec.validations[0].expresion"; correct the field`},
		"a value of another type": {`expression: 1`, "is invalid: json: cannot unmarshal number"},
		"a field in another case": {`Expression: "true"`, `is invalid: unknown field "spec.validations[0].Expression"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"PolicyConstraint", "ClusterPolicyConstraint"} {
				_, err := constrained(t, kind, test.expression)
				require.ErrorContains(t, err, "standard input:2 (document 1): "+kind+" app/authenticated ")
				assert.ErrorContains(t, err, test.want)
			}
		})
	}
}
