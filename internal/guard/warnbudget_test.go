package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// dear is a validation that costs much, and differs from path to path.
var dear = "{expression: 'path.route.name == \"\" || " + strings.Repeat("[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, x > 0) && ", 30) + "true'}"

// Constraints that cost all that they may, of a namespace with very many routes, are
// paid for by writers of what they bind: those of the gateway's policy pay nothing.
func TestConstraintsBelowCostNothingAbove(t *testing.T) {
	g := &guard.Guard{Engine: effective.NewEngine(), Budget: 10_000}
	v := world(t, docs(routes(300), routeDoc("r", "[{}]", "g"), "kind: Namespace\nmetadata: {name: app}"))
	v = v.With(snapshot.Put(constraintIn(t, "app", "validations: ["+dear+"]")))
	const unevaluated = "Warn NotRead PolicyConstraint app/c"
	for name, write := range map[string]string{
		"the gateway's policy":       policyDoc("Paint", "infra", "top", onG+"a: 1"),
		"the gateway":                strings.Replace(gatewayDoc("g", "istio", "http"), "name: g", "name: g, labels: {x: z}", 1),
		"the namespace of the route": "kind: Namespace\nmetadata: {name: app, labels: {x: z}}",
	} {
		t.Run(name, func(t *testing.T) {
			ev := evaluateBy(t, g, v, write)
			assert.Empty(t, ev.Denials)
			assert.Contains(t, findings(t, ev), unevaluated)
		})
	}
	ev := evaluateBy(t, g, v, policyDoc("Paint", "app", "own", fmt.Sprintf("targetRefs: [%s]\na: 1", targetsUpTo(100))))
	require.NotEmpty(t, ev.Denials)
	assert.Equal(t, api.ReasonTooMuch, ev.Denials[0].Code, "writers of what it binds pay")
}

// targetsUpTo are the first routes, as targets.
func targetsUpTo(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r%03d}", i))
	}
	return strings.Join(out, ", ")
}

func TestCostliestConstraintIsNamed(t *testing.T) {
	v := world(t, docs(routes(300)))
	v = v.With(snapshot.Put(constraintIn(t, "app", "validations: [{expression: 'path.route.name != \"\"'}]")), snapshot.Put(namedAs(t, "other", "dear", "validations: ["+dear+"]")))
	ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine()}, v, policyDoc("Paint", "infra", "top", onG+"a: 1"))
	assert.NotContains(t, strings.Join(findings(t, ev), "\n"), "NotRead", "it has no path in its namespace")

	v = v.With(snapshot.Put(namedAs(t, "app", "dear", "validations: ["+dear+"]")))
	ev = evaluateBy(t, &guard.Guard{Engine: effective.NewEngine()}, v, policyDoc("Paint", "infra", "top", onG+"a: 1"))
	assert.Contains(t, findings(t, ev), "Warn NotRead PolicyConstraint app/dear")
}

// What nothing changes about is looked at for a warning alone, and not paid for.
func TestUnchangedPathsCostWriterNothing(t *testing.T) {
	v := world(t, routes(300)).With(snapshot.Put(constraintIn(t, "infra", "validations: ["+strings.Replace(dear, "||", "&&", 1)+"]")))
	ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), Budget: 10}, v, gatewayDoc("g", "istio", "http"))
	assert.Empty(t, ev.Denials)
}

func TestValidationLimit(t *testing.T) {
	some := func(namespace, name string, n int) *constraint.Constraint {
		return namedAs(t, namespace, name, "validations: ["+strings.TrimSuffix(strings.Repeat("{expression: 'true'}, ", n), ", ")+"]")
	}
	deny := []string{"Deny TooMuch: PolicyConstraints, 65, Paint.example.com, 64"}
	for name, c := range map[string]struct {
		before []*constraint.Constraint
		write  *constraint.Constraint
		want   []string
	}{
		"as many as one may have":    {nil, some("app", "c", 64), nil},
		"as many as there may be":    {[]*constraint.Constraint{some("app", "a", 63)}, some("app", "c", 1), nil},
		"one more":                   {[]*constraint.Constraint{some("app", "a", 64)}, some("app", "c", 1), deny},
		"one more, by an update":     {[]*constraint.Constraint{some("app", "a", 63), some("app", "c", 1)}, some("app", "c", 2), deny},
		"what was there before":      {[]*constraint.Constraint{some("app", "a", 64), some("app", "c", 2)}, some("app", "c", 2), nil},
		"fewer than before":          {[]*constraint.Constraint{some("app", "a", 64), some("app", "c", 2)}, some("app", "c", 1), nil},
		"those of another namespace": {[]*constraint.Constraint{some("other", "a", 64)}, some("app", "c", 1), nil},
		"rules, which cost little":   {[]*constraint.Constraint{some("app", "a", 64)}, namedAs(t, "app", "c", "rules: [{path: a, max: 1}]"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, base())
			for _, b := range c.before {
				v = v.With(snapshot.Put(b))
			}
			assert.Equal(t, c.want, findingsOf(t, evaluateWrite(t, v, c.write), "TooMuch"))
		})
	}
	v := world(t, base())
	for i := range 3 {
		data := strings.TrimSuffix(strings.Repeat("{expression: 'true'}, ", 64), ", ")
		v = v.With(snapshot.Put(readConstraintOf(t, fmt.Sprint("c", i), "Paint", "validations: ["+data+"]")))
	}
	ev := evaluateWrite(t, v, readConstraintOf(t, "c9", "Paint", "validations: [{expression: 'true'}]"))
	assert.Empty(t, ev.Denials, "those who write ClusterPolicyConstraints bind the cluster")
}

func evaluateWrite(t testing.TB, v *snapshot.View, o snapshot.Object) *guard.Decision {
	t.Helper()
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, change(v, o), nil)
	require.NoError(t, err)
	return ev
}
