package constraint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/test/messages"
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
	const sound = "validations: [{expression: 'true'}]\n"
	cases := map[string]struct {
		spec string
		want []string
	}{
		"nothing is demanded": {"{}", []string{"spec: Required value"}},
		"an unknown enforcement": {sound + "enforcement: Shout", []string{
			`spec.enforcement: Unsupported value: "Shout"`,
		}},
		"an expression that does not compile": {"validations: [{expression: 'true'}, {expression: 'effective.a >'}]", []string{
			`spec.validations[1].expression: Invalid value: "effective.a >"`,
		}},
		"an expression of the wrong type": {"validations: [{expression: '1'}]", []string{
			`spec.validations[0].expression: Invalid value: "1"`,
		}},
		"no expression": {"validations: [{message: m}]", []string{
			`spec.validations[0].expression: Invalid value: ""`,
		}},
		"a message that is no text": {"validations: [{expression: 'true', messageExpression: '1'}]", []string{
			`spec.validations[0].messageExpression: Invalid value: "1"`,
		}},
		"an element that no path has": {"validations: [{expression: 'path.gatway.name == \"a\"'}]", []string{
			`spec.validations[0].expression: Invalid value: "path.gatway.name == \"a\""`,
		}},
		"all at once": {"targets: [{kind: Gatway}]\nvalidations: [{expression: 'a && b'}]\nrules: [{path: a, pattern: '('}]", []string{
			`spec.targets[0].kind: Invalid value: "Gatway"`,
			`spec.validations[0].expression: Invalid value: "a && b"`,
			`spec.validations[0].expression: Invalid value: "a && b"`,
			"spec.rules[0].pattern: Invalid value: \"(\"",
		}},

		"a target without a kind":          {sound + "targets: [{name: a}]", []string{"spec.targets[0].kind: Required value"}},
		"a name and a selector":            {sound + "targets: [{kind: Gateway, name: a, selector: {}}]", []string{"spec.targets[0].selector: Forbidden"}},
		"a section without a name":         {sound + "targets: [{kind: Gateway, sectionName: a}]", []string{"spec.targets[0].name: Required value"}},
		"a namespace of a namespace":       {sound + "targets: [{kind: Namespace, namespace: a}]", []string{"spec.targets[0].namespace: Forbidden"}},
		"a namespace of a class":           {sound + "targets: [{kind: GatewayClass, namespace: a}]", []string{"spec.targets[0].namespace: Forbidden"}},
		"a section of a namespace":         {sound + "targets: [{kind: Namespace, name: a, sectionName: b}]", []string{"spec.targets[0].sectionName: Forbidden"}},
		"a selector that is none":          {sound + "targets: [{kind: Gateway, selector: {matchExpressions: [{key: a, operator: Like}]}}]", []string{`spec.targets[0].selector: Invalid value: "<error>"`}},
		"labels of what is not read":       {sound + "targets: [{group: example.com, kind: Bucket, selector: {}}]", []string{"spec.targets[0].selector: Forbidden"}},
		"a Service in Gateway API's group": {sound + "targets: [{group: gateway.networking.k8s.io, kind: Service}]", []string{`spec.targets[0].kind: Invalid value: "Service"`}},

		"no address":                      {"rules: [{required: true}]", []string{`spec.rules[0].path: Invalid value: ""`}},
		"an address with an open bracket": {"rules: [{path: 'a[', required: true}]", []string{`spec.rules[0].path: Invalid value: "a["`}},
		"an address with an item":         {"rules: [{path: 'a[0]', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[0]"`}},
		"an address with an empty name":   {"rules: [{path: a..b, required: true}]", []string{`spec.rules[0].path: Invalid value: "a..b"`}},
		"a star in a name":                {"rules: [{path: 'a*', required: true}]", []string{`spec.rules[0].path: Invalid value: "a*"`}},
		"a name behind a bracket":         {"rules: [{path: 'a[*]b', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[*]b"`}},
		"an open quote":                   {"rules: [{path: 'a[\"b\"', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[\"b\""`}},
		"an address that leads too deep":  {"rules: [{path: '" + strings.Repeat("a.", 64) + "a', required: true}]", []string{`spec.rules[0].path: Invalid value: "` + strings.Repeat("a.", 64) + `a"`}},
		"a rule without a demand":         {"rules: [{path: a}]", []string{"spec.rules[0]: Required value"}},
		"bounds that are none": {"rules: [{path: a, min: few, max: ''}]", []string{
			`spec.rules[0].min: Invalid value: "few"`,
			`spec.rules[0].max: Invalid value: ""`,
		}},
		"an astronomic bound":  {"rules: [{path: a, max: '1e99999999'}]", []string{`spec.rules[0].max: Invalid value: "1e99999999"`}},
		"bounds of two sorts":  {"rules: [{path: a, min: 1, max: 30s}]", []string{`spec.rules[0].max: Invalid value: "30s"`}},
		"min greater than max": {"rules: [{path: a, min: 1h, max: 30s}]", []string{`spec.rules[0].min: Invalid value: "1h"`}},
		"an enum of nothing":   {"rules: [{path: a, enum: []}]", []string{"spec.rules[0].enum: Required value"}},
		"a pattern that is none": {"rules: [{path: a, pattern: 'a(?=b)'}]", []string{
			"spec.rules[0].pattern: Invalid value: \"a(?=b)\"",
		}},
		"a huge pattern": {"rules: [{path: a, pattern: '" + strings.Repeat("a", 1025) + "'}]", []string{"spec.rules[0].pattern: Too long"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, messages.Fields(t, cluster(t, c.spec).Invalid)) })
	}
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
