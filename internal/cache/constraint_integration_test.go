//go:build integration

package cache

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

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
	i := slices.IndexFunc(r.Statuses(), func(s Status) bool { return s.Ref.Kind == "PolicyConstraint" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "the constraint is enforced", r.Statuses()[i].Message)
	v, problems, err := List(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Len(t, v.Constraints(redRef.PolicyKind()), 1, "the CLI reads it, too")
	must(t, e.Kubectl("delete", "policyconstraint", "red-only", "-n", "app"))
	soon(t, func() bool { return held() == 0 }, "the deleted constraint is still in force")
}
