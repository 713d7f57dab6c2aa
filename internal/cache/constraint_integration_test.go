//go:build integration

package cache

import (
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
