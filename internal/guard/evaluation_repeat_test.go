package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// What is denied is not lost among warnings, however many.
func TestViolationAmongManyLosses(t *testing.T) {
	const many = 10_001
	var own, other strings.Builder
	for i := range many {
		fmt.Fprintf(&own, "a%05d: 1, ", i)
		fmt.Fprintf(&other, "a%05d: 2, ", i)
	}
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		gatewayPolicy("overrides: {strategy: patch, when: 'spec.z > 50', z: 50}"),
		policyDoc("Paint", "app", "fill", toRoute+"overrides: {strategy: patch, "+strings.TrimSuffix(other.String(), ", ")+"}")))
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v,
		change(v, read(t, v, routePolicy("defaults: {strategy: patch, "+own.String()+"z: 100}"))), nil)
	require.NoError(t, err)
	require.True(t, ev.Denied())
	assert.Equal(t, "z", ev.Denials[0].Rule)
}

// What is found is said in one order, with the same example.
func TestFindingsHaveOneOrder(t *testing.T) {
	const a, b = "matches: [{path: {value: /a}}]", "matches: [{path: {value: /b}}]"
	r := func(rules string) string { return routeDoc("r, creationTimestamp: '2026-01-01T00:00:00Z'", rules, "g") }
	v := world(t, docs(plainKinds, gatewayDoc("g", "istio", "http"), r("[{matches: [{path: {value: /c}}]}]"), routeDoc("s", "[{"+a+"}, {"+b+"}]", "g")))
	for range 20 {
		ev := evaluate(t, v, policyDoc("AtListener", "app", "p", "targetRefs: [{kind: Gateway, name: g, namespace: infra}, {kind: Gateway, name: h, namespace: infra}]\na: 1"))
		require.Len(t, ev.Warnings, 2)
		assert.Equal(t, []string{"spec.targetRefs[0]", "spec.targetRefs[1]"}, []string{ev.Warnings[0].Field, ev.Warnings[1].Field})
		ev = evaluate(t, v, r("[{"+a+"}, {"+b+"}]"))
		require.Len(t, ev.Warnings, 1)
		assert.Equal(t, "GET http://any-host/a", ev.Warnings[0].Request)
	}
}

// A constraint that does not bind the write is reported once, and after all else.
func TestUnboundConstraintIsReportedOnceAndLast(t *testing.T) {
	many := "validations:"
	for i := range 12 {
		many += fmt.Sprintf("\n- {expression: 'path.route.name == \"x%d\" || origins.size() == 0', message: 'see example.com/%d'}", i, i)
	}
	for name, c := range map[string]struct {
		constraint, before string
		want               string
	}{
		"new":                 {many, "", "Warn RequirementUnmet PolicyConstraint app/c: example.com/0, HTTPRoute app/r rule-1, Gateway infra/g, 1, 11, Paint infra/top"},
		"it was so before":    {many, gatewayPolicy("defaults: {a: 2}"), "Warn RequirementUnmet PolicyConstraint app/c: example.com/0, HTTPRoute app/r rule-1, Gateway infra/g, 1, 11, Paint infra/top"},
		"one of a rule":       {"rules: [{path: b, required: true}]", gatewayPolicy("defaults: {a: 2}"), "Warn RequirementUnmet b PolicyConstraint app/c: HTTPRoute app/r rule-1, Gateway infra/g, 1, Paint infra/top"},
		"it is for the audit": {"enforcement: Audit\n" + many, "", "Audit RequirementUnmet PolicyConstraint app/c: example.com/0, HTTPRoute app/r rule-1, Gateway infra/g, 1, 11, Paint infra/top"},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, base()).With(snapshot.Put(constraintIn(t, "app", c.constraint)))
			if c.before != "" {
				v = v.With(put(t, v, c.before))
			}
			got := findings(t, evaluate(t, v, gatewayPolicy("defaults: {a: 1}")))
			require.Len(t, got, 2)
			assert.Equal(t, []string{"Warn BlastRadius: Paint infra/top, Paint, 2 paths, 1 namespace"}, got[:1])
			assert.Equal(t, c.want, got[1])
		})
	}
}

// The API server takes an owner's name of any length.
func TestOwnersTextIsBounded(t *testing.T) {
	long := []metav1.OwnerReference{{Kind: "ConfigMap", Name: strings.Repeat("x", 1<<20), UID: "1"}}
	assert.Equal(t, "ConfigMap "+strings.Repeat("x", 502)+"…", guard.NewOwners(nil, long))
	assert.Empty(t, guard.NewOwners(long, long))
}
