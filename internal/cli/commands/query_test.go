package commands

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/build"
)

const demo = "testdata/demo/"

func demoFiles(names ...string) []string {
	out := []string{"-f", "../../../examples/crds"}
	for _, name := range names {
		out = append(out, "-f", demo+name+".yaml")
	}
	return out
}

func demoManifests() []string {
	return demoFiles("cluster", "gateway-policies", "route-auth", "route-limits")
}

func TestObjectNames(t *testing.T) {
	for _, words := range []string{
		"httproute/toystore", "httproutes/toystore", "HTTPRoute/toystore", "httproute toystore", "HTTPRoutes.gateway.networking.k8s.io/toystore",
		"ratelimitpolicies/toystore-limits", "ratelimitpolicy.kuadrant.io/toystore-limits", "RateLimitPolicy toystore-limits", "rlp/toystore-limits",
	} {
		args := append([]string{"effective", "-n", "app", "-o", "json"}, demoManifests()...)
		got := run(t, "", append(args, strings.Fields(words)...)...)
		require.Equal(t, exitOK, got.code, "%s: %s", words, got.stderr)
		assert.NotEmpty(t, decode[api.EffectivePolicyList](t, got.stdout).Items, words)
	}
	for _, words := range []string{"gateway/edge", "gtw/edge", "gw edge", "gatewayclasses/demo", "gc/demo"} {
		args := append([]string{"effective", "-n", "infra", "-o", "json"}, demoManifests()...)
		got := run(t, "", append(args, strings.Fields(words)...)...)
		require.Equal(t, exitOK, got.code, "%s: %s", words, got.stderr)
		assert.Len(t, decode[api.EffectivePolicyList](t, got.stdout).Items, 4, words)
	}
}

// The paths of a policy are those that it is on, of its own kind.
func TestEffectiveOfAPolicy(t *testing.T) {
	got := run(t, "", append(demoManifests(), "effective", "-n", "infra", "ratelimitpolicy/gw-limits", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	list := decode[api.EffectivePolicyList](t, got.stdout)
	require.Len(t, list.Items, 2)
	assert.Equal(t, "RateLimitPolicy", list.Items[0].PolicyKind.Kind)
	require.Len(t, list.Outcomes, 1)
	assert.Equal(t, api.Inactive, list.Outcomes[0].State)
}

func TestEffectiveOfANamespace(t *testing.T) {
	for namespace, want := range map[string][2]int{"app": {4, 4}, "infra": {4, 4}, "elsewhere": {0, 0}} {
		got := run(t, "", append(demoManifests(), "effective", "-n", namespace, "-o", "json")...)
		require.Equal(t, exitOK, got.code, got.stderr)
		list := decode[api.EffectivePolicyList](t, got.stdout)
		assert.Equal(t, want, [2]int{len(list.Items), len(list.Outcomes)}, namespace)
	}
}

// A policy that is not on any path is listed for its target.
func TestEffectiveListsPoliciesWithoutPath(t *testing.T) {
	text := `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: broken}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}, rules: all}
`
	got := run(t, text, append(demoFiles("cluster"), "-f", "-", "effective", "-n", "app", "httproute/toystore", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	list := decode[api.EffectivePolicyList](t, got.stdout)
	assert.Empty(t, list.Items)
	require.Len(t, list.Outcomes, 1)
	assert.Equal(t, api.Invalid, list.Outcomes[0].State)
	assert.Contains(t, list.Outcomes[0].Message, "spec.rules")
	goldenStderr(t, got)
}

func TestAllPathsListsAttachableKinds(t *testing.T) {
	got := run(t, "", append(demoFiles("cluster", "route-auth"), "effective", "--all-paths", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	var kinds []string
	for _, item := range decode[api.EffectivePolicyList](t, got.stdout).Items {
		kinds = append(kinds, item.PolicyKind.Kind+" "+item.Path[4].Section)
		assert.Equal(t, item.PolicyKind.Kind != "AuthPolicy", len(item.Rules) == 0)
	}
	assert.Equal(t, []string{
		"AuthPolicy toys", "AuthPolicy admin", "RateLimitPolicy toys", "RateLimitPolicy admin",
		"ColorPolicy toys", "ColorPolicy admin", "TimeoutPolicy toys", "TimeoutPolicy admin",
	}, kinds)
	assert.Contains(t, got.stdout, `"rules": []`)
	assert.Contains(t, got.stdout, `"policies": []`)
}

func TestExplainOfARule(t *testing.T) {
	for _, rule := range []string{"rules.authentication.sso", "sso"} {
		got := run(t, "", append(demoManifests(), "explain", "-n", "app", "authpolicy/toystore-auth", rule, "-o", "json")...)
		require.Equal(t, exitOK, got.code, got.stderr)
		items := decode[api.ExplanationList](t, got.stdout).Items
		require.Len(t, items, 2)
		require.Len(t, items[0].Rules, 1)
		assert.Equal(t, "rules.authentication.sso", items[0].Rules[0].Rule)
		assert.Equal(t, "AuthPolicy infra/gw-auth", items[0].Rules[0].From.String())
		require.Len(t, items[0].Rules[0].Lost, 1)
		assert.Equal(t, "overrides", items[0].Rules[0].Lost[0].ToBlock)
		assert.Len(t, items[0].Policies, 2)
	}
}

func TestOutcomeInAllNamespaces(t *testing.T) {
	got := run(t, "", append(demoManifests(), "outcome", "-A", "authpolicy", "toystore-auth", "-o", "yaml")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	var list api.OutcomeList
	require.NoError(t, yaml.UnmarshalStrict([]byte(got.stdout), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, api.PathCounts{Total: 2, PartiallyEnforced: 2}, list.Items[0].Paths)
}

// The output does not depend on the order of the files.
func TestFileOrderDoesNotMatter(t *testing.T) {
	one := run(t, "", append(demoFiles("cluster", "gateway-policies", "route-auth"), "effective", "-o", "json")...)
	two := run(t, "", append(demoFiles("route-auth", "gateway-policies", "cluster"), "effective", "-o", "json")...)
	assert.Equal(t, one, two)
}

func TestUsageErrors(t *testing.T) {
	missing := t.TempDir() + "/missing.yaml"
	other := write(t, "crd.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: authpolicies.example.com, labels: {gateway.networking.k8s.io/policy: inherited}}
spec: {group: example.com, scope: Namespaced, names: {kind: AuthPolicy, plural: authpolicies}}
`)
	assertErrors(t, demoManifests(), errorTable(t, "demo-errors"))
	assertErrors(t, nil, errorTable(t, "usage-errors"))
	assertErrors(t, nil, map[string]errorCase{
		"a kind of two groups":       {append(demoManifests(), "-f", other, "effective", "authpolicy/x"), 2, `AuthPolicy.example.com, AuthPolicy.kuadrant.io`},
		"a missing file":             {[]string{"effective", "-f", missing}, 2, missing + ": file does not exist; check the path"},
		"a folder without manifests": {[]string{"effective", "-f", t.TempDir()}, 2, "no manifests found"},
		"a change that is missing":   {[]string{"diff", "-f", missing}, 2, "file does not exist"},
		"an unknown enforcement":     {[]string{"check", "-f", missing, "--enforcement", "ask"}, 2, `invalid value "ask" for --enforcement`},
	})
}

func TestHelpAndVersion(t *testing.T) {
	got := run(t, "")
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stdout, "Exit codes:\n  0  success: ")
	got = run(t, "", "version")
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.True(t, strings.HasPrefix(got.stdout, "kubectl-overrule dev\n"), got.stdout)
	for _, args := range [][]string{{"version", "-o", "json"}, {"-o", "json", "version"}} {
		got = run(t, "", args...)
		assert.Equal(t, build.Read(), decode[build.Info](t, got.stdout))
	}
	got = run(t, "", "version", "-o", "tree")
	assert.Equal(t, exitError, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, `invalid value "tree" for --output`)
	goldenStderr(t, got)
}

// JSON and YAML never have colors.
func TestColorOnlyInTableAndTree(t *testing.T) {
	for format, painted := range map[string]bool{"table": true, "tree": true, "json": false, "yaml": false} {
		args := append(demoManifests(), "effective", "-o", format)
		assert.Equal(t, painted, strings.Contains((&app{reader: reader{terminal: terminal{color: true}}}).exec(t, "", args...).stdout, "\x1b["), format)
		assert.NotContains(t, run(t, "", args...).stdout, "\x1b[", format)
	}
}

// A canceled command returns an error and prints no partial result.
func TestCanceledCommand(t *testing.T) {
	for _, args := range [][]string{
		append(demoManifests(), "effective"),
		append(demoManifests(), "explain", "-A", "gateway/edge"),
		append(demoManifests(), "outcome", "-A", "authpolicy/gw-auth"),
		append(demoManifests(), "effective", "--all-paths"),
		append(demoManifests(), "effective", "--without"),
		append(demoManifests(), "reach", "-A", "authpolicy/gw-auth"),
		append(demoManifests(), "reach", "--affecting", "-A", "gateway/edge"),
		append(against("cluster", "gateway-policies"), "diff", "-f", write(t, "profile.yaml", authOf("own", "none"))),
	} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var stdout, stderr bytes.Buffer
		a := &app{now: time.Now, reader: reader{terminal: terminal{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}}}}
		assert.Equal(t, exitError, a.run(ctx, args))
		assert.Contains(t, stderr.String(), "context canceled")
		assert.Empty(t, stdout.String())
	}
}
