package commands

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

const (
	namespaceInfra = "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: infra}\n"
	gatewayEdge    = "\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: edge}\n"
)

// crd is a CustomResourceDefinition.
func crd(plural, group, kind, more string) string {
	return "\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group +
		"}\nspec: {group: " + group + ", scope: Namespaced, names: {kind: " + kind + ", plural: " + plural + "}" + more + "}\n"
}

// messagesOf returns the messages of the findings of a code.
func messagesOf(code api.ReasonCode, reasons []api.Reason) []string {
	var out []string
	for _, r := range reasons {
		if r.Code == code {
			out = append(out, r.Message)
		}
	}
	return out
}

// The objects of a namespace are deleted with it, so that their own deletion is not
// evaluated. If the deletion of the namespace is denied, they are evaluated.
func TestDeleteNamespace(t *testing.T) {
	text := namespaceInfra + "---\n" + gwAuth + gatewayEdge
	args := append(against("cluster", "gateway-policies", "route-auth"), "--delete", "-f", "-", "-o", "json")
	for name, c := range map[string]struct {
		limit string
		code  int
		want  []string
	}{
		"allowed": {"0", exitOK, []string{"DELETE Namespace infra (Unreached)"}},
		"denied": {"1", exitNegative, []string{
			"DELETE Namespace infra BlastRadius (Unreached)", "DELETE AuthPolicy gw-auth OverrideRemoved BlastRadius", "DELETE Gateway edge BlastRadius (Unreached)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, text, append(args, "check", "--blast-radius-limit", c.limit)...)
			require.Equal(t, c.code, got.code, got.stderr)
			items := decode[api.VerdictList](t, got.stdout).Items
			assert.Equal(t, c.want, verdicts(items))
			assert.Equal(t, api.Changes{Paths: 2, Namespaces: 1}, items[0].Changes)
		})
	}
	got := run(t, text, append(args, "diff")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	changes := decode[api.ChangeList](t, got.stdout).Items
	require.NotEmpty(t, changes)
	for _, change := range changes {
		assert.Equal(t, api.Ref{Kind: "Namespace", Name: "infra"}, change.Object)
	}
}

// policiesInOwnNamespace has policies in a separate namespace, of a kind that has two
// profiles.
const policiesInOwnNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: policies}
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: first}
spec: {group: example.com, kind: OwnPolicy, class: inherited, targets: {fields: [targetRef], namespaces: free}, blocks: {overrides: [overrides]}}
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: second}
spec: {group: example.com, kind: OwnPolicy, class: inherited, targets: {fields: [targetRef], namespaces: free}, blocks: {overrides: [overrides]}}
---
apiVersion: example.com/v1
kind: OwnPolicy
metadata: {namespace: policies, name: afar}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: edge}, overrides: {size: 1}}
`

const (
	namespacePolicies = "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: policies}\n"
	firstProfile      = "\n---\napiVersion: overrule.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: first}\nspec: {group: example.com, kind: OwnPolicy, class: inherited, targets: {fields: [targetRef]}}\n"
)

// The deletion of a profile after that of a namespace does not restore the policies
// of the namespace, although those of its kind are decoded again.
func TestDeletedNamespaceStaysEmpty(t *testing.T) {
	args := append(against("cluster"), "--against", write(t, "afar.yaml", policiesInOwnNamespace), "diff", "--delete", "-f", "-", "-o", "json")
	got := run(t, namespacePolicies+firstProfile, args...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ChangeList](t, got.stdout).Items
	require.Len(t, items, 2)
	for _, c := range items {
		assert.Equal(t, "Namespace policies", c.Object.String())
		assert.Nil(t, c.Rules[0].After)
	}
}

// A cluster has the definitions of the kinds that it has, whether there are
// policies or not.
func TestUpdateDefinitionOnCluster(t *testing.T) {
	for kind, want := range map[string]string{
		"TokenRateLimitPolicy": "UPDATE CustomResourceDefinition tokenratelimitpolicies.kuadrant.io", // without policies
		"AuthPolicy":           "UPDATE CustomResourceDefinition authpolicies.kuadrant.io",
	} {
		got := runOnStoredPolicies(t, nil, nil, crd(strings.ToLower(strings.TrimSuffix(kind, "y"))+"ies", "kuadrant.io", kind, ""), "check", "-f", "-", "-o", "json")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Equal(t, []string{want}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
	}
}

// On a cluster the owners and annotations that are there are read where they
// matter, and nowhere else.
func TestStoredObjectIsReadOnDemand(t *testing.T) {
	got := runOnStoredPolicies(t, nil, nil, `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: gw-auth, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: u1}]}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {jwt: {issuerUrl: "https://sso.example.com"}}}}}
`, "check", "-f", "-", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Equal(t, []string{"UPDATE AuthPolicy gw-auth (OverrideEvaded)"}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
	got = runOnStoredPolicies(t, nil, []error{errGone}, gwAuth, "check", "--delete", "-f", "-")
	require.Equal(t, exitOK, got.code, "nothing is read: "+got.stderr)
	got = runOnStoredPolicies(t, nil, []error{errGone}, gwAuth, "check", "--delete", "--blast-radius-limit=1", "-f", "-")
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "gone")
}

var hash = regexp.MustCompile(`acknowledge-blast-radius[:=] ?([0-9a-f]+-[0-9]+)`)

// printedHash returns the hash that a denial prints.
func printedHash(t *testing.T, v api.Verdict) string {
	t.Helper()
	denials := messagesOf(api.ReasonBlastRadius, v.Reasons)
	require.Len(t, denials, 1, "%+v", v)
	found := hash.FindStringSubmatch(denials[0])
	require.Len(t, found, 2, denials[0])
	return found[1]
}

// limited is a gateway policy without overrides, with an acknowledgement.
func limited(acknowledged string) string {
	return `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: wide, annotations: {overrule.dev/acknowledge-blast-radius: "` + acknowledged + `"}}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  defaults: {strategy: merge, rules: {authentication: {a: 1}}}
`
}

// A deletion has the acknowledgement of the object as it is stored.
func TestAcknowledgeDeletion(t *testing.T) {
	remove := func(stored string) []api.Verdict {
		args := append(against("cluster"), "--against", write(t, "stored.yaml", stored), "--blast-radius-limit=1", "--delete")
		return check(t, limited(""), args...)
	}
	denied := remove(limited(""))
	assert.Equal(t, []string{"DELETE AuthPolicy wide BlastRadius (RulesLost)"}, verdicts(denied))
	seen := printedHash(t, denied[0])
	assert.Equal(t, []string{"DELETE AuthPolicy wide (RulesLost)"}, verdicts(remove(limited(seen))))
	assert.Equal(t, []string{"DELETE AuthPolicy wide BlastRadius (RulesLost)"}, verdicts(remove(limited("0123456789abcdef"))))
}
