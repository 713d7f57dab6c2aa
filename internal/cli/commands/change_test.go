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

// selected is a gateway with two listeners for namespaces with different labels. Only
// one of them has an override.
const selected = `
apiVersion: v1
kind: Namespace
metadata: {name: app, labels: {tier: public}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: demo
  listeners:
  - {name: guarded, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {tier: public}}}}}
  - {name: open, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {tier: internal}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: r}
spec: {parentRefs: [{namespace: infra, name: edge}]}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: gw-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge, sectionName: guarded}
  overrides: {strategy: merge, rules: {authentication: {sso: {jwt: {}}}}}
`

// Changes of other objects than policies that bypass an override.
func TestOverrideBypassesAreDenied(t *testing.T) {
	demoScene := against("cluster", "gateway-policies", "route-auth")
	labelled := []string{"--against", write(t, "selected.yaml", selected)}
	for name, c := range map[string]struct {
		against []string
		text    string
		remove  bool
		want    []string
	}{
		"the namespace of the policies is deleted": {
			append(against("cluster"), "--against", write(t, "afar.yaml", policiesInOwnNamespace)), namespacePolicies + firstProfile, true,
			[]string{"DELETE Namespace policies OverrideEvaded", "DELETE PolicyProfile first"},
		},
		"the namespace of the route loses its label": {
			labelled, "apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {tier: internal}}\n", false,
			[]string{"UPDATE Namespace app OverrideEvaded"},
		},
		"the namespace of the route gets another label": {
			labelled, "apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {tier: public, team: toys}}\n", false,
			[]string{"UPDATE Namespace app"},
		},
		"the definition of the policies is deleted": {
			demoScene, crd("authpolicies", "kuadrant.io", "AuthPolicy", ""), true,
			[]string{"DELETE CustomResourceDefinition authpolicies.kuadrant.io OverrideEvaded"},
		},
		"the definition of the policies no longer serves a version": {
			demoScene, crd("authpolicies", "kuadrant.io", "AuthPolicy", ", versions: [{name: v1, served: false}]"), false,
			[]string{"UPDATE CustomResourceDefinition authpolicies.kuadrant.io OverrideEvaded"},
		},
		"the definition of a Gateway API kind is deleted with its objects": {
			demoScene, crd("gateways", "gateway.networking.k8s.io", "Gateway", "") + gatewayEdge, true,
			[]string{"DELETE CustomResourceDefinition gateways.gateway.networking.k8s.io"},
		},
		"a profile no longer has overrides": {
			demoScene, `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: own}
spec: {group: kuadrant.io, kind: AuthPolicy, class: inherited, targets: {fields: [targetRef]}, rules: [rules.*.*]}
`, false, []string{"CREATE PolicyProfile own OverrideEvaded"},
		},
		"the policy gets an owner": {
			demoScene, `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: gw-auth, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: u1}]}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {jwt: {issuerUrl: "https://sso.example.com"}}}}}
`, false, []string{"UPDATE AuthPolicy gw-auth OverrideEvaded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(c.against, "check", "-f", "-", "-o", "json")
			if c.remove {
				args = append(args, "--delete")
			}
			got := run(t, c.text, args...)
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.Equal(t, c.want, verdicts(decode[api.VerdictList](t, got.stdout).Items))
		})
	}
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
		"allowed": {"0", exitOK, []string{"DELETE Namespace infra"}},
		"denied": {"1", exitNegative, []string{
			"DELETE Namespace infra BlastRadius", "DELETE AuthPolicy gw-auth OverrideRemoved BlastRadius", "DELETE Gateway edge BlastRadius",
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

// The PolicyProfiles of the manifests are deleted with their definition, so that the
// built-in profile takes effect again.
func TestDeleteProfileDefinition(t *testing.T) {
	own := `
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: own}
spec: {group: kuadrant.io, kind: AuthPolicy, class: inherited, targets: {fields: [targetRef]}}
`
	args := append(against("cluster", "route-auth"), "--against", write(t, "own.yaml", own))
	got := run(t, crd("policyprofiles", "overrule.dev", "PolicyProfile", "")+own, append(args, "diff", "--delete", "-f", "-", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ChangeList](t, got.stdout).Items
	require.Len(t, items, 2)
	assert.Equal(t, "CustomResourceDefinition policyprofiles.overrule.dev", items[0].Object.String())
	assert.Equal(t, "rules", items[0].Rules[0].Rule, "each top-level field was a rule")
	assert.Nil(t, items[0].Rules[0].After)
}

// Owners are not checked on create, nor are those that an update does not add.
func TestUnchangedOwners(t *testing.T) {
	owned := `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: u1}]}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {jwt: {}}}}}
`
	assert.Equal(t, []string{"CREATE AuthPolicy owned"}, verdicts(check(t, owned, against("cluster")...)))
	stored := append(against("cluster"), "--against", write(t, "owned.yaml", owned))
	assert.Equal(t, []string{"UPDATE AuthPolicy owned"}, verdicts(check(t, owned, stored...)))
	other := strings.Replace(owned, "name: c, uid: u1", "name: d, uid: u2", 1)
	assert.Equal(t, []string{"UPDATE AuthPolicy owned OverrideEvaded"}, verdicts(check(t, other, stored...)), "but another one counts")
	stored = append(against("cluster"), "--against", write(t, "owned.yaml", strings.Replace(owned, ", uid: u1", "", 1)))
	assert.Equal(t, []string{"UPDATE AuthPolicy owned OverrideEvaded"}, verdicts(check(t, other, stored...)), "with or without uids")
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
func limited(value, acknowledged string) string {
	return `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: wide, annotations: {overrule.dev/acknowledge-blast-radius: "` + acknowledged + `"}}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  defaults: {strategy: merge, rules: {authentication: {a: ` + value + `}}}
`
}

func TestAcknowledgeBlastRadius(t *testing.T) {
	scene := against("cluster")
	limit := append(scene, "--blast-radius-limit=1")
	assert.Equal(t, []string{"CREATE AuthPolicy wide"}, verdicts(check(t, limited("1", ""), scene...)), "there is no limit unless one is set")
	assert.Equal(t, []string{"CREATE AuthPolicy wide"}, verdicts(check(t, limited("1", ""), append(scene, "--blast-radius-limit=2")...)))
	denied := check(t, limited("1", ""), limit...)
	assert.Equal(t, []string{"CREATE AuthPolicy wide BlastRadius"}, verdicts(denied))
	printed := printedHash(t, denied[0])
	assert.Equal(t, []string{"CREATE AuthPolicy wide"}, verdicts(check(t, limited("1", printed), limit...)), "this change is acknowledged")
	denied = check(t, limited("2", printed), limit...)
	assert.Equal(t, []string{"CREATE AuthPolicy wide BlastRadius"}, verdicts(denied), "another change is not")
	assert.NotEqual(t, printed, printedHash(t, denied[0]))
}

// A deletion has the acknowledgement of the object as it is stored.
func TestAcknowledgeDeletion(t *testing.T) {
	remove := func(stored string) []api.Verdict {
		args := append(against("cluster"), "--against", write(t, "stored.yaml", stored), "--blast-radius-limit=1", "--delete")
		return check(t, limited("1", ""), args...)
	}
	denied := remove(limited("1", ""))
	assert.Equal(t, []string{"DELETE AuthPolicy wide BlastRadius (RulesLost)"}, verdicts(denied))
	seen := printedHash(t, denied[0])
	assert.Equal(t, []string{"DELETE AuthPolicy wide (RulesLost)"}, verdicts(remove(limited("1", seen))))
	assert.Equal(t, []string{"DELETE AuthPolicy wide BlastRadius (RulesLost)"}, verdicts(remove(limited("1", "0123456789abcdef"))))
}
