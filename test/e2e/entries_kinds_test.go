//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/test/cases"
	"overrule.dev/overrule/test/env"
)

// rightsOnSecondDefinition has users with the right to override on one of the two
// resources of a kind: the right on the served resource counts.
func rightsOnSecondDefinition(t *testing.T, g testNamespaces) {
	usual := rbacv1.PolicyRule{APIGroups: []string{"policies.example.com"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "delete"}}
	right := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"policies.example.com"}, Resources: []string{resource}, Verbs: []string{"override"}}
	}
	const first, other = "of-tints", "of-agates"
	g.c.MustAddUser(t, first, nil, usual, right("tints"))
	g.c.MustAddUser(t, other, nil, usual, right("agates"))
	removal := []string{"-n", g.infra, "delete", "tint/gw-coat"}
	for range 3 { // repeated, since the order of the two resources is random
		requireDenied(t, g.as(other, removal...), &cases.Command{Denied: "OverrideRemoved"})
		succeed(t, g.as(first, append(removal, "--dry-run=server")...))
	}
}

// deleteProfilesConcurrently deletes the two profiles of a kind at the same time: one
// deletion may pass, the other profile has to stay.
func deleteProfilesConcurrently(t *testing.T, g testNamespaces) {
	profiles := []string{"policyprofile/cobalts", "policyprofile/cobalts-too"}
	var deleted atomic.Int32
	var wait sync.WaitGroup
	for _, p := range profiles {
		wait.Go(func() {
			if g.as(writer, "delete", p).Code == 0 {
				deleted.Add(1)
			}
		})
	}
	wait.Wait()
	assert.LessOrEqual(t, deleted.Load(), int32(1))
}

// failedConversion breaks the conversion of a kind, so that its policies cannot be listed:
// they stay effective as last read until they can be listed again.
func failedConversion(t *testing.T, g testNamespaces) {
	stored := func(v1, v1beta1, conversion string) {
		succeed(t, g.as(overrider, "patch", "crd/rusts.policies.example.com", "--type=json", "-p", `[{"op":"replace","path":"/spec/versions/0/storage","value":`+v1+
			`},{"op":"replace","path":"/spec/versions/1/storage","value":`+v1beta1+`},{"op":"replace","path":"/spec/conversion","value":`+conversion+`}]`))
	}
	read := func(version string) {
		rule := regexp.MustCompile(`\["` + version + `"\]\[[^]]*"rusts"`)
		env.Soon(t, func() bool {
			return rule.MatchString(g.c.Kubectl("get", "validatingwebhookconfiguration/overrule", "-o",
				`jsonpath={range .webhooks[0].rules[*]}{.apiVersions}{.resources}{"\n"}{end}`).Stdout)
		}, "the kind is not read again")
	}
	moved := func() {
		requireDenied(t, g.as(writer, "-n", g.app, "patch", "httproute/toystore", "--type=merge", "-p",
			`{"spec":{"parentRefs":[{"namespace":"`+g.infra+`","name":"other"}]}}`), &cases.Command{Denied: "OverrideEvaded", Says: []string{"of Rust "}})
	}
	stored("false", "true", `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}`)
	repaired := func() { stored("true", "false", `{"strategy":"None"}`) }
	t.Cleanup(repaired) // otherwise the definition cannot be deleted
	read("v1beta1")
	moved()
	repaired()
	read("v1")
	moved()
}

var fencedYAML = regexp.MustCompile("(?ms)^```yaml\n(apiVersion: .*?)^```$")

// applyPageManifests requires that the API server accepts the manifests of the pages on
// guardrails and constraints.
func (c *cluster) applyPageManifests(t *testing.T) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	var all [][]string
	for _, name := range []string{"guardrails.md", "constraints.md"} {
		page, err := os.ReadFile(filepath.Join(root, "docs", name))
		require.NoError(t, err)
		all = append(all, fencedYAML.FindAllStringSubmatch(string(page), -1)...)
	}
	require.Len(t, all, 4, "a role and three constraints")
	succeed(t, c.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: infra}"))
	for _, m := range all {
		succeed(t, c.Apply(m[1], "--dry-run=server"))
	}
}
