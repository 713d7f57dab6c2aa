package commands

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/cases"
	"overrule.dev/overrule/test/outputschema"
)

const contract = "testdata/contract/manifests.yaml"

// The output for the policy of the contract is the contract's document.
func TestEffectiveContract(t *testing.T) {
	want, err := os.ReadFile("testdata/contract/effective.json")
	require.NoError(t, err)
	got := run(t, "", "effective", "-f", contract, "-n", "app", "authpolicy/route-policy", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.JSONEq(t, string(want), got.stdout)
	assert.Empty(t, got.stderr)
}

// Without an object, the items are the same, with the outcomes of all policies.
func TestEffectiveContractOfAllObjects(t *testing.T) {
	data, err := os.ReadFile("testdata/contract/effective.json")
	require.NoError(t, err)
	want := decode[api.EffectivePolicyList](t, string(data))
	for _, args := range [][]string{nil, {"-A"}, {"-n", "app"}, {"-n", "app", "httproute/toystore"}, {"gatewayclass", "istio"}, {"-A", "gw/edge"}} {
		got := run(t, "", append([]string{"effective", "-f", contract, "-o", "json"}, args...)...)
		require.Equal(t, exitOK, got.code, got.stderr)
		list := decode[api.EffectivePolicyList](t, got.stdout)
		assert.Equal(t, want.Items, list.Items, args)
		require.Len(t, list.Outcomes, 2, args)
		assert.Equal(t, want.Outcomes[0], list.Outcomes[0], args)
		assert.Equal(t, api.Enforced, list.Outcomes[1].State, args)
	}
}

// The JSON of every command matches its schema in docs/schema.
func TestOutputsMatchSchemas(t *testing.T) {
	for i, c := range cases.Load(t) {
		if testing.Short() && i%5 != 0 { // all of them in a long part
			continue
		}
		var changed []cases.Object
		for _, change := range c.Changes {
			changed = append(changed, change.Object)
		}
		against, change := manifests(t, c.Against), manifests(t, changed)
		class := ""
		for _, o := range c.Against {
			if name, _, _ := unstructured.NestedString(o.Object, "spec", "gatewayClassName"); name != "" {
				class = "gatewayclass/" + name
			}
		}
		requireSchema(t, api.KindEffectivePolicyList, run(t, "", "effective", "-f", against, "-o", "json", "--all-paths"))
		if class != "" {
			requireSchema(t, api.KindReachList, run(t, "", "reach", "--affecting", "-f", against, "-o", "json", class))
			requireSchema(t, api.KindExplanationList, run(t, "", "explain", "-f", against, "-o", "json", class))
		}
		requireSchema(t, api.KindViolationList, run(t, "", "violations", "-f", against, "-o", "json"))
		requireSchema(t, api.KindRenderedLimitsList, run(t, "", "render", "-f", against, "-o", "json"))
		remove := "--delete=" + map[bool]string{true: "true", false: "false"}[c.Changes[0].Operation == "DELETE"]
		requireSchema(t, api.KindVerdictList, run(t, "", "check", "--against", against, "-f", change, "-o", "json", remove))
		requireSchema(t, api.KindChangeList, run(t, "", "diff", "--against", against, "-f", change, "-o", "json", remove))
		for _, o := range c.Against {
			if strings.HasSuffix(o.GetKind(), "Policy") {
				args := []string{"-f", against, "-o", "json", "-n", o.GetNamespace(), o.GetKind() + "/" + o.GetName()}
				requireSchema(t, api.KindOutcomeList, run(t, "", append([]string{"outcome"}, args...)...))
				requireSchema(t, api.KindReachList, run(t, "", append([]string{"reach"}, args...)...))
			}
		}
	}
}

func TestSchemasRejectInvalidOutput(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown field": `{"apiVersion":"overrule.dev/v1alpha1","kind":"OutcomeList","items":[],"extra":1}`,
		"no items":         `{"apiVersion":"overrule.dev/v1alpha1","kind":"OutcomeList"}`,
		"null items":       `{"apiVersion":"overrule.dev/v1alpha1","kind":"OutcomeList","items":null}`,
		"an unknown state": `{"apiVersion":"overrule.dev/v1alpha1","kind":"OutcomeList","items":[{"policy":{},"state":"Fine","paths":{"total":0,"enforced":0,"partiallyEnforced":0,"overridden":0,"inactive":0},"targets":[]}]}`,
	} {
		assert.Error(t, outputschema.Validate(t, api.KindOutcomeList, text), name)
	}
}

func requireSchema(t *testing.T, kind string, got result) {
	t.Helper()
	require.NotEqual(t, exitError, got.code, got.stderr)
	require.NoError(t, outputschema.Validate(t, kind, got.stdout), got.stdout)
}
