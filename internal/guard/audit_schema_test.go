package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// A policy that was stored before its schema was tightened, or that stands in a
// file, breaks the schema by itself: an audit lists it. A write is not held to it,
// since the API server has checked what is written.
func TestAuditReportsStandaloneSchemaViolation(t *testing.T) {
	objects := docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), oneOf)
	audit := func(policy string) (out []string) {
		found, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), world(t, docs(objects, policy)), effective.Scope{All: true})
		require.NoError(t, err)
		for _, v := range violations(t, found) {
			assert.Equal(t, api.ReasonEffectiveInvalid, v.Code)
			assert.Equal(t, api.Deny, v.Action)
			out = append(out, v.Message)
		}
		return out
	}
	assert.Equal(t, []string{"Paint app/own"}, audit(routePolicy("a: 1\nb: 2")))
	assert.Contains(t, audit(gatewayPolicy("defaults: {a: wrong}")), "Paint infra/top, spec.defaults.a")
	assert.Equal(t, []string{"Paint app/own, spec.a"}, audit(routePolicy("a: wrong")))
	assert.Empty(t, audit(routePolicy("a: 1")))
	assert.Empty(t, audit(gatewayPolicy("defaults: {a: 1}\noverrides: {c: 1}")))
	assert.Empty(t, audit(routePolicy("")), "without a rule there is nothing to check")

	v := world(t, docs(objects, routePolicy("a: 1\nb: 2")))
	assert.Empty(t, evaluate(t, v, routePolicy("a: 1\nb: 3")).Denials)
}

// The policy is the object itself in some kinds, and one rule in some of these.
func TestAuditChecksObjectsWithoutSpec(t *testing.T) {
	audit := func(profile, fields string) (out []string) {
		v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
			worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs]}\ncontent: .\nstrategy: {allowed: [merge]}\n"+profile),
			"kind: Schema\nof: Paint\nschema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object}, targetRefs: {type: array, items: {type: object}}, a: {type: string}, n: {type: string}}}",
			"kind: Paint\nmetadata: {namespace: app, name: own}\ntargetRefs: [{kind: HTTPRoute, name: r}]\n"+fields))
		found, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), v, effective.Scope{All: true})
		require.NoError(t, err)
		for _, v := range violations(t, found) {
			out = append(out, v.Message)
		}
		return out
	}
	assert.Equal(t, []string{"Paint app/own"}, audit("", "a: 1"))
	assert.Empty(t, audit("", "a: x"))
	assert.Empty(t, audit("named: {field: n}", "n: key\na: x"))
}
