package constraint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
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

// faults returns the errors of a constraint one by one.
func faults(t *testing.T, c *constraint.Constraint) []string {
	t.Helper()
	if c.Invalid == nil {
		return nil
	}
	all, ok := c.Invalid.(utilerrors.Aggregate) //nolint:errorlint // it is what is promised
	require.True(t, ok)
	var out []string
	for _, err := range all.Errors() {
		out = append(out, err.Error())
	}
	return out
}

const own = "a PolicyConstraint can only target objects in its own namespace: omit the field, or use a ClusterPolicyConstraint"

func TestInvalidConstraints(t *testing.T) {
	const sound = "validations: [{expression: 'true'}]\n"
	cases := map[string]struct {
		spec string
		want []string
	}{
		"nothing is demanded": {"{}", []string{"spec: Required value: a constraint needs validations or rules"}},
		"an unknown enforcement": {sound + "enforcement: Shout", []string{
			`spec.enforcement: Unsupported value: "Shout": supported values: "Deny", "Warn", "Audit"`,
		}},
		"an expression that does not compile": {"validations: [{expression: 'true'}, {expression: 'effective.a >'}]", []string{
			`spec.validations[1].expression: Invalid value: "effective.a >": 1:14: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`,
		}},
		"an expression of the wrong type": {"validations: [{expression: '1'}]", []string{
			`spec.validations[0].expression: Invalid value: "1": 1:1: a validation must evaluate to bool, not int`,
		}},
		"no expression": {"validations: [{message: m}]", []string{
			`spec.validations[0].expression: Invalid value: "": 1:1: the expression is empty`,
		}},
		"a message that is no text": {"validations: [{expression: 'true', messageExpression: '1'}]", []string{
			`spec.validations[0].messageExpression: Invalid value: "1": 1:1: a message must evaluate to string, not int`,
		}},
		"an element that no path has": {"validations: [{expression: 'path.gatway.name == \"a\"'}]", []string{
			`spec.validations[0].expression: Invalid value: "path.gatway.name == \"a\"": 1:5: undefined field 'gatway' of path`,
		}},
		"all at once": {"targets: [{kind: Gatway}]\nvalidations: [{expression: 'a && b'}]\nrules: [{path: a, pattern: '('}]", []string{
			`spec.targets[0].kind: Invalid value: "Gatway": must be one of GatewayClass, Gateway, ListenerSet, GRPCRoute, HTTPRoute, TCPRoute, TLSRoute, UDPRoute, or set the group of a backend`,
			`spec.validations[0].expression: Invalid value: "a && b": 1:1: undeclared reference to 'a' (in container '')`,
			`spec.validations[0].expression: Invalid value: "a && b": 1:6: undeclared reference to 'b' (in container '')`,
			"spec.rules[0].pattern: Invalid value: \"(\": error parsing regexp: missing closing ): `(`",
		}},

		"a target without a kind":          {sound + "targets: [{name: a}]", []string{"spec.targets[0].kind: Required value: the kind of the target objects"}},
		"a name and a selector":            {sound + "targets: [{kind: Gateway, name: a, selector: {}}]", []string{"spec.targets[0].selector: Forbidden: name and selector exclude each other"}},
		"a section without a name":         {sound + "targets: [{kind: Gateway, sectionName: a}]", []string{"spec.targets[0].name: Required value: required with sectionName"}},
		"a namespace of a namespace":       {sound + "targets: [{kind: Namespace, namespace: a}]", []string{"spec.targets[0].namespace: Forbidden: Namespace is cluster-scoped"}},
		"a namespace of a class":           {sound + "targets: [{kind: GatewayClass, namespace: a}]", []string{"spec.targets[0].namespace: Forbidden: GatewayClass is cluster-scoped"}},
		"a section of a namespace":         {sound + "targets: [{kind: Namespace, name: a, sectionName: b}]", []string{"spec.targets[0].sectionName: Forbidden: a Namespace has no sections"}},
		"a selector that is none":          {sound + "targets: [{kind: Gateway, selector: {matchExpressions: [{key: a, operator: Like}]}}]", []string{`spec.targets[0].selector: Invalid value: "<error>": "Like" is not a valid label selector operator`}},
		"labels of what is not read":       {sound + "targets: [{group: example.com, kind: Bucket, selector: {}}]", []string{"spec.targets[0].selector: Forbidden: labels of kind Bucket.example.com are not available: set name instead"}},
		"a Service in Gateway API's group": {sound + "targets: [{group: gateway.networking.k8s.io, kind: Service}]", []string{`spec.targets[0].kind: Invalid value: "Service": must be one of GatewayClass, Gateway, ListenerSet, GRPCRoute, HTTPRoute, TCPRoute, TLSRoute, UDPRoute, or set the group of a backend`}},

		"no address":                      {"rules: [{required: true}]", []string{`spec.rules[0].path: Invalid value: "": must not be empty`}},
		"an address with an open bracket": {"rules: [{path: 'a[', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[": expected *] or a quoted name after "[", as in ["a.b"]; for example limits.*.rates[*].limit`}},
		"an address with an item":         {"rules: [{path: 'a[0]', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[0]": expected *] or a quoted name after "[", as in ["a.b"]; for example limits.*.rates[*].limit`}},
		"an address with an empty name":   {"rules: [{path: a..b, required: true}]", []string{`spec.rules[0].path: Invalid value: "a..b": "" is not a valid name: write a name with characters other than letters, digits, "_" and "-" as ["name"]; for example limits.*.rates[*].limit`}},
		"a star in a name":                {"rules: [{path: 'a*', required: true}]", []string{`spec.rules[0].path: Invalid value: "a*": "a*" is not a valid name: write a name with characters other than letters, digits, "_" and "-" as ["name"]; for example limits.*.rates[*].limit`}},
		"a name behind a bracket":         {"rules: [{path: 'a[*]b', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[*]b": expected "." before "b"; for example limits.*.rates[*].limit`}},
		"an open quote":                   {"rules: [{path: 'a[\"b\"', required: true}]", []string{`spec.rules[0].path: Invalid value: "a[\"b\"": expected "]" after "b"; for example limits.*.rates[*].limit`}},
		"an address that leads too deep":  {"rules: [{path: '" + strings.Repeat("a.", 64) + "a', required: true}]", []string{`spec.rules[0].path: Invalid value: "` + strings.Repeat("a.", 64) + `a": must have at most 64 segments`}},
		"a rule without a demand":         {"rules: [{path: a}]", []string{"spec.rules[0]: Required value: must set at least one of min, max, enum, pattern, required"}},
		"bounds that are none": {"rules: [{path: a, min: few, max: ''}]", []string{
			`spec.rules[0].min: Invalid value: "few": must be a number (1000, "0.5"), a quantity ("1Gi") or a duration ("30s")`,
			`spec.rules[0].max: Invalid value: "": must be a number (1000, "0.5"), a quantity ("1Gi") or a duration ("30s")`,
		}},
		"an astronomic bound":  {"rules: [{path: a, max: '1e99999999'}]", []string{`spec.rules[0].max: Invalid value: "1e99999999": must be a number (1000, "0.5"), a quantity ("1Gi") or a duration ("30s")`}},
		"bounds of two sorts":  {"rules: [{path: a, min: 1, max: 30s}]", []string{`spec.rules[0].max: Invalid value: "30s": min and max must both be numbers, quantities or durations`}},
		"min greater than max": {"rules: [{path: a, min: 1h, max: 30s}]", []string{`spec.rules[0].min: Invalid value: "1h": must not be greater than max`}},
		"an enum of nothing":   {"rules: [{path: a, enum: []}]", []string{"spec.rules[0].enum: Required value: must list the allowed values"}},
		"a pattern that is none": {"rules: [{path: a, pattern: 'a(?=b)'}]", []string{
			"spec.rules[0].pattern: Invalid value: \"a(?=b)\": error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
		}},
		"a huge pattern": {"rules: [{path: a, pattern: '" + strings.Repeat("a", 1025) + "'}]", []string{"spec.rules[0].pattern: Too long: may not be more than 1024 bytes"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, faults(t, cluster(t, c.spec))) })
	}
}

func TestPolicyConstraintTargetsOwnNamespace(t *testing.T) {
	cases := map[string]struct {
		target string
		want   []string
	}{
		"its own, left out":     {"{kind: HTTPRoute, name: r}", nil},
		"its own, named":        {"{kind: HTTPRoute, namespace: app}", nil},
		"another":               {"{kind: HTTPRoute, namespace: infra}", []string{`spec.targets[0].namespace: Invalid value: "infra": ` + own}},
		"its own Namespace":     {"{kind: Namespace, name: app}", nil},
		"another Namespace":     {"{kind: Namespace, name: infra}", []string{`spec.targets[0].name: Invalid value: "infra": ` + own}},
		"a class is in none":    {"{kind: GatewayClass, name: istio}", []string{`spec.targets[0].kind: Invalid value: "GatewayClass": is cluster-scoped: ` + own}},
		"Namespaces by a label": {"{kind: Namespace, selector: {matchLabels: {team: a}}}", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, faults(t, inApp(t, "targets: ["+c.target+"]\nvalidations: [{expression: 'true'}]")))
		})
	}
}

func TestPolicyKindIsRequired(t *testing.T) {
	var o api.ClusterPolicyConstraint
	o.Spec.Rules = []api.ConstraintRule{{Path: "a", Required: true}}
	assert.Equal(t, []string{
		"spec.policyKind.group: Required value: the group of the policies", "spec.policyKind.kind: Required value: the kind of the policies",
	}, faults(t, constraint.FromClusterPolicyConstraint(&o)))
}
