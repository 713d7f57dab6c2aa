package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// listViolations returns a summary of the violations that a command prints.
func listViolations(t *testing.T, args ...string) []string {
	t.Helper()
	got := run(t, "", append([]string{"violations", "-o", "json"}, args...)...)
	require.NotEqual(t, exitError, got.code, got.stderr)
	requireSchema(t, api.KindViolationList, got)
	var out []string
	for _, v := range decode[api.ViolationList](t, got.stdout).Items {
		policy := ""
		if v.Policy != nil {
			policy = v.Policy.String()
		}
		leaf := v.Path[len(v.Path)-1]
		out = append(out, string(v.Action)+" "+string(v.Code)+" "+v.PolicyKind.Kind+" "+leaf.Name+"#"+leaf.Section+" "+v.Rule+" "+policy)
	}
	if len(out) > 0 {
		assert.Equal(t, exitNegative, got.code)
		assert.Empty(t, got.stderr)
	} else {
		assert.Equal(t, exitOK, got.code)
		assert.Equal(t, "no violations found\n", got.stderr)
	}
	return out
}

// The route's API key is an alternative to the gateway's single sign-on.
func TestViolations(t *testing.T) {
	both := []string{
		"Deny OverrideWeakened AuthPolicy toystore#toys rules.authentication.api-key AuthPolicy infra/gw-auth",
		"Deny OverrideWeakened AuthPolicy toystore#admin rules.authentication.api-key AuthPolicy infra/gw-auth",
	}
	files := demoFiles("cluster", "gateway-policies", "route-auth")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"all":                               {nil, both},
		"of a route":                        {[]string{"-n", "app", "httproute/toystore"}, both},
		"of a gateway":                      {[]string{"-n", "infra", "gateway/edge"}, both},
		"of a class":                        {[]string{"gatewayclass/demo"}, both},
		"of the policy that is weakened":    {[]string{"-n", "infra", "authpolicy/gw-auth"}, both},
		"of the policy that weakens it":     {[]string{"-n", "app", "authpolicy", "toystore-auth"}, both},
		"of a namespace on the paths":       {[]string{"-n", "app"}, both},
		"of a namespace that is on none":    {[]string{"-n", "elsewhere"}, nil},
		"of all namespaces":                 {[]string{"-n", "elsewhere", "-A"}, both},
		"of the kind":                       {[]string{"--kind", "AuthPolicy"}, both},
		"of another kind":                   {[]string{"--kind", "RateLimitPolicy"}, nil},
		"of a policy of another kind there": {[]string{"-n", "infra", "ratelimitpolicy/gw-limits"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, listViolations(t, append(files, c.args...)...))
		})
	}
	assert.Empty(t, listViolations(t, demoFiles("cluster", "gateway-policies")...))
}

func TestViolationsErrors(t *testing.T) {
	assertErrors(t, append(demoFiles("cluster"), "violations"), errorTable(t, "violations-errors"))
}

func TestViolationsOnCluster(t *testing.T) {
	got := runOnCluster(t, "violations", "-o", "tree")
	require.Equal(t, exitNegative, got.code, got.stderr)
	head, paths, _ := strings.Cut(got.stdout, "\n")
	assert.Contains(t, head, "Deny OverrideWeakened of AuthPolicy rules.authentication.api-key: rules.authentication.api-key of AuthPolicy app/toystore-auth ")
	assert.Equal(t, `├─ Gateway infra/edge#http > HTTPRoute app/toystore#toys
└─ Gateway infra/edge#http > HTTPRoute app/toystore#admin
`, paths)
}

// oneOf is the definition of a kind whose spec takes a or b and not both, and
// two policies that bring one each.
func oneOf(schema string) string {
	policy := func(namespace, name, target, rule string) string {
		return `
---
apiVersion: example.com/v1
kind: Choice
metadata: {namespace: ` + namespace + `, name: ` + name + `}
spec: {targetRef: {group: gateway.networking.k8s.io, ` + target + `}, ` + rule + "}\n"
	}
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: choices.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Choice, plural: choices}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: ` + schema + `
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: choices}
spec:
  group: example.com
  kind: Choice
  class: inherited
  targets: {fields: [targetRef]}
  blocks: {defaults: [defaults]}
  strategy: {allowed: [merge]}
` + policy("infra", "upper", "kind: Gateway, name: edge", "defaults: {a: 1}") + policy("app", "lower", "kind: HTTPRoute, name: toystore", "b: 2")
}

const (
	eitherOr = `{type: object, properties: {spec: {type: object, oneOf: [{required: [a]}, {required: [b]}, {required: [defaults]}],
        properties: {targetRef: {type: object, x-kubernetes-preserve-unknown-fields: true}, a: {type: integer}, b: {type: integer},
          defaults: {type: object, properties: {a: {type: integer}, b: {type: integer}}}}}}}`
	notStructural = `{type: object, properties: {spec: {type: object, oneOf: [{required: [a], type: object}],
        properties: {a: {type: integer}, b: {type: integer}}}}}`
)

func TestViolationsOfASchema(t *testing.T) {
	files := append(demoFiles("cluster"), "-f", write(t, "choice.yaml", oneOf(eitherOr)))
	assert.Equal(t, []string{"Deny EffectiveInvalid Choice toystore#toys  Choice infra/upper", "Deny EffectiveInvalid Choice toystore#admin  Choice infra/upper"}, listViolations(t, files...))
	against := append(against("cluster"), "--against", files[len(files)-1])
	for _, v := range check(t, `
apiVersion: example.com/v1
kind: Choice
metadata: {namespace: app, name: lower}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}, b: 3}
`, against...) {
		assert.True(t, v.Allowed, "the violation existed before: %+v", v.Reasons)
	}
}

// A policy that is not on any path is checked, too: it has no route or no target, or
// cannot be read.
func TestViolationsOfPoliciesWithoutPath(t *testing.T) {
	policy := func(name, spec string) string {
		return "---\napiVersion: example.com/v1\nkind: Choice\nmetadata: {namespace: app, name: " + name + ", creationTimestamp: '2026-01-01T00:00:00Z'}\nspec: {" + spec + "}\n"
	}
	const (
		lonely = "targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: lonely}"
		absent = "targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: absent}"
		route  = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: app, name: lonely}\nspec: {}\n"
	)
	definition, _, _ := strings.Cut(oneOf(eitherOr), "\n---\napiVersion: example.com/v1\n")
	files := append(demoFiles("cluster"), "-f", write(t, "choice.yaml", definition+route+
		policy("both", lonely+", a: 1, b: 2")+policy("sound", lonely+", a: 1")+policy("text", absent+", a: x")+policy("broken", lonely+", defaults: 1")))
	var (
		both   = "Deny EffectiveInvalid Choice lonely#  Choice app/both"
		text   = "Deny EffectiveInvalid Choice absent#  Choice app/text"
		broken = "Deny Invalid Choice lonely#  Choice app/broken"
	)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"all":                       {nil, []string{text, broken, both}},
		"of the policy":             {[]string{"-n", "app", "choice/both"}, []string{both}},
		"of a sound policy":         {[]string{"-n", "app", "choice/sound"}, nil},
		"of the route":              {[]string{"-n", "app", "httproute/lonely"}, []string{broken, both}},
		"of another route":          {[]string{"-n", "app", "httproute/toystore"}, nil},
		"of the namespace":          {[]string{"-n", "app"}, []string{text, broken, both}},
		"of another namespace":      {[]string{"-n", "infra"}, nil},
		"of another kind of policy": {[]string{"--kind", "AuthPolicy"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, listViolations(t, append(files, c.args...)...))
		})
	}
	t.Run("what is wrong", func(t *testing.T) {
		got := run(t, "", append(files, "violations", "-o", "tree")...)
		assert.Contains(t, got.stdout, "Deny Invalid of Choice: Choice app/broken ")
		assert.Contains(t, got.stdout, ": spec.defaults: Invalid value: \"number\": must be an object\n└─ HTTPRoute app/lonely\n")
		assert.Contains(t, got.stdout, "Deny EffectiveInvalid of Choice: Choice app/text ")
	})
}

func TestUncheckableSchemaIsNoViolation(t *testing.T) {
	got := run(t, "", append(demoFiles("cluster"), "-f", write(t, "choice.yaml", oneOf(notStructural)), "violations")...)
	assert.Equal(t, exitOK, got.code, got.stdout)
	assert.Contains(t, got.stderr, "warning: ")
	assert.Contains(t, got.stderr, "not structural")
	assert.Contains(t, got.stderr, "no violations found\n")
	assert.Empty(t, got.stdout)
}
