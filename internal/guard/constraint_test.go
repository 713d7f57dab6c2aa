package guard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/tables"
)

// typed returns a view in which Paint has a schema.
func typed(t testing.TB, v *snapshot.View) *snapshot.View {
	t.Helper()
	paint := definedPaint(t, "{type: object, properties: {a: {type: integer}, overrides: {type: object, properties: {b: {type: string}}}}}")
	return v.WithKindConfig(v.KindConfig().With(snapshot.Put(paint)))
}

// evaluateObject evaluates the write of a constraint.
func evaluateObject(t testing.TB, g *guard.Guard, v *snapshot.View, c snapshot.Object) *guard.Decision {
	t.Helper()
	if g.Engine == nil {
		g.Engine = effective.NewEngine()
	}
	ev, err := g.Evaluate(t.Context(), v, change(v, c), nil)
	require.NoError(t, err)
	return ev
}

func TestInvalidConstraints(t *testing.T) {
	cases := tables.Read[map[string]struct {
		Before, After string
		Want          []string
	}](t, "testdata/tables/constraints.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := world(t, base())
			if c.Before != "" {
				v = v.With(snapshot.Put(readConstraint(t, c.Before)))
			}
			assert.Equal(t, c.Want, findings(t, evaluateObject(t, &guard.Guard{}, typed(t, v), readConstraint(t, c.After))))
		})
	}
}

func TestConstraintOnMissingKind(t *testing.T) {
	v := world(t, base())
	c := readConstraintOf(t, "c", "Missing", need)
	assert.Equal(t, []string{
		"Warn NotRead: ClusterPolicyConstraint c, Missing.example.com",
	}, findings(t, evaluateObject(t, &guard.Guard{}, typed(t, v), c)))
	v = v.With(snapshot.Put(c))
	assert.Empty(t, requirementsOf(t, evaluate(t, v, routePolicy("b: 1"))), "as long as it is not")
}

// That it did not fit another kind is no excuse.
func TestConstraintChangesKind(t *testing.T) {
	v := world(t, base()).With(snapshot.Put(readConstraintOf(t, "c", "Label", "rules: [{path: x, max: 1}]")))
	assert.Equal(t, []string{"Deny Invalid"}, codes(t, evaluateObject(t, &guard.Guard{}, typed(t, v), readConstraint(t, "rules: [{path: x, max: 1}]"))))
}

func TestManyViolatingPathsAreCounted(t *testing.T) {
	v := world(t, routes(5))
	assert.Equal(t, []string{
		"Warn RequirementUnmet ClusterPolicyConstraint c: 5 paths, HTTPRoute app/r000 rule-1, Gateway infra/g, HTTPRoute app/r001 rule-1, HTTPRoute app/r002 rule-1, …",
	}, findings(t, evaluateObject(t, &guard.Guard{}, v, readConstraint(t, need))))
}

// How many paths violate it is reported as far as the budget goes; it denies nothing.
func TestConstraintWithTooManyPaths(t *testing.T) {
	v := world(t, routes(50))
	dear := strings.Repeat("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, x > 0) && ", 30)
	got := findings(t, evaluateObject(t, &guard.Guard{Budget: 20_000}, v, readConstraint(t, "validations: [{expression: '"+dear+"path.route.name == \"\"', message: m}]")))
	require.Len(t, got, 1)
	assert.Regexp(t, "^Warn RequirementUnmet ClusterPolicyConstraint c: [0-9]+ paths, HTTPRoute app/r000 rule-1, ", got[0])
	assert.Equal(t, []string{
		"Warn RequirementUnmet ClusterPolicyConstraint c",
	}, findings(t, evaluateObject(t, &guard.Guard{Budget: 20_000}, v, readConstraint(t, "validations: [{expression: '"+dear+"path.route.name != \"\"', message: m}]"))))
}

func TestConstraintDeadlineDeniesNothing(t *testing.T) {
	v := world(t, routes(50))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	c := readConstraint(t, need)
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(ctx, v, change(v, c), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Warn RequirementUnmet ClusterPolicyConstraint c"}, findings(t, ev))
}

func TestDeletedConstraint(t *testing.T) {
	c := readConstraint(t, need)
	ev := deleted(t, world(t, base()).With(snapshot.Put(c)), c.Ref())
	assert.Empty(t, ev.After.Constraints(api.PolicyKind{Group: "example.com", Kind: "Paint"}))
}

// A constraint that is written is in force for what comes after it.
func TestConstraintAppliesAfterWrite(t *testing.T) {
	v := world(t, base())
	c, err := snapshot.Decode(constraint.Kind, nil, []byte(`{"metadata":{"namespace":"app","name":"own"},"spec":{"policyKind":{"group":"example.com","kind":"Paint"},"rules":[{"path":"a","max":10}]}}`), 0)
	require.NoError(t, err)
	after := evaluateObject(t, &guard.Guard{}, v, c).After
	assert.Equal(t, []string{"Deny RequirementUnmet a"}, codes(t, evaluate(t, after, routePolicy("a: 11"))))
}
