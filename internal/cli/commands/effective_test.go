package commands

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/tables"
)

func effectiveItems(t *testing.T, args ...string) []string {
	t.Helper()
	got := run(t, "", append([]string{"effective", "-o", "json"}, args...)...)
	require.Equal(t, exitOK, got.code, got.stderr)
	var out []string
	for _, item := range decode[api.EffectivePolicyList](t, got.stdout).Items {
		last := item.Path[len(item.Path)-1]
		mark := ""
		if len(item.Policies) == 0 {
			mark = " none"
		}
		out = append(out, item.PolicyKind.Kind+" "+last.Name+"#"+last.Section+mark)
	}
	return slices.Compact(out) // one for each listener
}

// effective --without lists the paths that have no policy of a kind.
func TestPathsWithoutPolicy(t *testing.T) {
	shapes := []string{"-f", "testdata/shapes.yaml"}
	for name, c := range tables.Read[map[string]struct{ Args, Want []string }](t, "testdata/tables/paths-without-policy.yaml") {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.Want, effectiveItems(t, append(c.Args, shapes...)...)) })
	}
	got := run(t, "", append(shapes, "effective", "--without", "--kind", "GCPGatewayPolicy")...)
	assert.Equal(t, result{exitOK, "", "no paths without a policy found\n"}, got)
	got = run(t, "", append(shapes, "effective", "--without", "-n", "app", "slowpolicy/slow")...)
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "invalid --without: must not be used with a policy")
}

// On a cluster, paths are listed for the kinds that are installed.
func TestPathsWithoutPolicyOnCluster(t *testing.T) {
	got := runOnCluster(t, "effective", "--without", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	kinds := make(map[string]bool)
	for _, item := range decode[api.EffectivePolicyList](t, got.stdout).Items {
		kinds[item.PolicyKind.Kind] = true
		assert.Empty(t, item.Policies)
	}
	assert.Equal(t, map[string]bool{"DNSPolicy": true, "TLSPolicy": true, "TokenRateLimitPolicy": true}, kinds)
}

// --kind limits the output to a kind, but conflicts with other kinds on fields of a
// route are still reported.
func TestKindFilter(t *testing.T) {
	got := run(t, "", "effective", "-f", "testdata/shapes.yaml", "--kind", "timeoutpolicy", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	list := decode[api.EffectivePolicyList](t, got.stdout)
	require.Len(t, list.Items, 4)
	require.Len(t, list.Outcomes, 1)
	for _, item := range list.Items {
		assert.Equal(t, "TimeoutPolicy", item.PolicyKind.Kind)
	}
	field := list.Items[1].Route.Fields[0]
	assert.Equal(t, []api.PolicyKind{{Group: "policies.example.com", Kind: "SlowPolicy"}}, field.ConflictsWith)
	assert.Equal(t, "60s", field.Value, "the direct kind takes precedence")
	assert.Equal(t, "60s", list.Items[1].Route.Spec["rules"].([]any)[0].(map[string]any)["timeouts"].(map[string]any)["request"])
	byPolicy := run(t, "", "effective", "-f", "testdata/shapes.yaml", "-n", "infra", "timeoutpolicy/gwt", "-o", "json")
	assert.Equal(t, got.stdout, byPolicy.stdout, "the same for its only policy")
	explained := run(t, "", "explain", "-A", "gateway/edge", "--kind", "SlowPolicy", "-f", "testdata/shapes.yaml", "-o", "json")
	for _, x := range decode[api.ExplanationList](t, explained.stdout).Items {
		assert.Equal(t, "SlowPolicy", x.PolicyKind.Kind)
	}
}

func TestOutcomesOfAllPolicies(t *testing.T) {
	for namespace, want := range map[string]int{"app": 3, "infra": 4, "shop": 1, "elsewhere": 0} {
		got := run(t, "", "outcome", "-f", "testdata/shapes.yaml", "-n", namespace, "-o", "json")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Len(t, decode[api.OutcomeList](t, got.stdout).Items, want, namespace)
	}
}
