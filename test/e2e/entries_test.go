//go:build e2e

package e2e

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"overrule.dev/overrule/test/cases"
	"overrule.dev/overrule/test/env"
)

// Both users may write every object; the overrider may also override policies.
const (
	writer    = "writer"
	overrider = "overrider"
)

// TestEntries makes one write for each way in which writes reach the webhook: the rows of
// test/cases/entries.yaml, which need an API server, and one case of each reason code. Users
// without the right to override are denied, others get a warning. The objects exist before
// the server starts, so no test waits for them.
func TestEntries(t *testing.T) {
	c := shared(t)
	all := cases.LoadEntries(t)
	c.defineEntries(t, all)
	c.addWriters(t)
	byName := make(map[string]cases.Entry)
	var objects strings.Builder
	for _, e := range all.Entries {
		byName[e.Name] = e
		objects.WriteString(manifest(t, e.Name, e.Against))
	}
	world := byName["policies-deleted-all"].Against
	require.Len(t, sequences, len(all.Sequences))
	for _, name := range all.Sequences {
		require.Contains(t, sequences, name)
		objects.WriteString(manifest(t, name, slices.Concat(world, sequenceObjects(t, name))))
	}
	listed := kubectlCases(t)
	for _, one := range listed {
		objects.WriteString(manifest(t, one.File, one.Against))
	}
	succeed(t, c.Apply(objects.String()))
	c.start(t)
	env.Soon(t, func() bool {
		rules := c.rules(t)
		for _, resource := range []string{"corals", "tints", "primers", "rusts", "cobalts"} {
			if !strings.Contains(rules, `"`+resource+`"`) {
				return false
			}
		}
		return true
	}, "the rules do not name the kinds")
	c.applyPageManifests(t)
	for _, e := range all.Entries {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			for i := range e.Steps {
				c.step(t, e.Name, &e.Steps[i])
			}
		})
	}
	for name, test := range sequences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c.testNamespaces(name))
		})
	}
	for _, one := range listed {
		t.Run("cases/"+one.File, func(t *testing.T) {
			t.Parallel()
			who := map[bool]string{false: writer, true: overrider}[one.MayOverride]
			for i := range one.Changes {
				c.compare(t, who, one.File, &one.Changes[i])
			}
		})
	}
}

// defineEntries creates the policy kinds, and deletes them when the test ends.
func (c *cluster) defineEntries(t *testing.T, all cases.Entries) {
	t.Helper()
	last := len(all.Definitions) - 1
	t.Cleanup(func() {
		c.removeWebhooks(t) // its server has stopped
		succeed(t, c.KubectlWith(manifest(t, "", all.Definitions), "delete", "--ignore-not-found", "--timeout=2m", "-f", "-"))
		succeed(t, c.Kubectl("delete", "policyprofile", "--all"))
	})
	succeed(t, c.KubectlWith(manifest(t, "", all.Definitions[:last]), "apply", "--server-side", "-f", "-"))
	env.Soon(t, func() bool { return c.Kubectl("get", "corals,tints,primers,rusts,cobalts", "-A").Code == 0 }, "the kinds are not served")
	succeed(t, c.KubectlWith(manifest(t, "", all.Definitions[last:]), "apply", "--server-side", "-f", "-"))
}

// addWriters creates the two users.
func (c *cluster) addWriters(t *testing.T) {
	t.Helper()
	normal := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}}
	override := rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io", "policies.example.com"}, Resources: []string{"*"}, Verbs: []string{"override"}}
	c.MustAddUser(t, writer, nil, normal)
	c.MustAddUser(t, overrider, nil, normal, override)
}

// step makes a call of kubectl as the users that it is for.
func (c *cluster) step(t *testing.T, name string, s *cases.Command) {
	t.Helper()
	stdin, args := c.call(t, name, s)
	as := func(user string, more ...string) env.Result {
		return c.KubectlWith(stdin, append(append([]string{"--as", user}, args...), more...)...)
	}
	switch {
	case s.Gone:
		env.Soon(t, func() bool { return as(writer).Code != 0 }, "the object still exists")
		return
	case s.Denied == "":
		got := as(writer)
		succeed(t, got)
		assert.NotContains(t, got.Stderr, "would no longer")
		return
	}
	var dry []string
	if s.Dry || s.Slow {
		dry = []string{"--dry-run=server"}
	}
	if s.Slow {
		var got env.Result
		env.Soon(t, func() bool { got = as(writer, dry...); return got.Code != 0 }, "not denied")
		requireDenied(t, got, s)
		env.Soon(t, func() bool { return strings.Contains(as(overrider, dry...).Stderr, "would no longer") }, "no warning")
		return
	}
	requireDenied(t, as(writer), s)
	if s.As == writer {
		return
	}
	got := as(overrider, dry...)
	if !s.Overridable() {
		requireDenied(t, got, s)
		return
	}
	succeed(t, got)
	assert.Regexp(t, "Warning: .*(would no longer|would be read differently|changes the value of the override)", got.Stderr)
}

// ownNamespaces are the namespaces of the fixtures in arguments of kubectl.
var ownNamespaces = regexp.MustCompile(`\b(infra|app)\b`)

// call returns the input and the arguments of a call.
func (c *cluster) call(t *testing.T, name string, s *cases.Command) (stdin string, args []string) {
	t.Helper()
	args = strings.Fields(ownNamespaces.ReplaceAllString(s.Kubectl, name+"-$1"))
	if s.Patch == nil {
		return own(name, string(s.Manifest)), args
	}
	patch, sort := own(name, string(s.Patch)), "--type=merge"
	if strings.HasPrefix(patch, "[") {
		sort = "--type=json"
	}
	patch = strings.NewReplacer(`"DEEP"`, strings.Repeat("[", 9994)+strings.Repeat("]", 9994), "LARGE", strings.Repeat("<", 1400<<10)).Replace(patch)
	if strings.Contains(patch, `"UID"`) {
		uid := c.Kubectl("-n", name+"-infra", "get", "configmap/release", "-o", "jsonpath={.metadata.uid}")
		succeed(t, uid)
		patch = strings.ReplaceAll(patch, `"UID"`, `"`+uid.Stdout+`"`)
	}
	return "", append(args, sort, "-p", patch)
}

// own returns JSON with the namespaces of an entry or a case.
func own(name, text string) string {
	if name == "" {
		return text
	}
	return strings.NewReplacer(`"infra"`, `"`+name+`-infra"`, `"app"`, `"`+name+`-app"`, `"elsewhere"`, `"`+name+`-elsewhere"`).Replace(text)
}

func manifest(t *testing.T, name string, objects []cases.Object) string {
	t.Helper()
	var out strings.Builder
	for i := range objects {
		o := objects[i].DeepCopy()
		unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
		data, err := json.Marshal(o)
		require.NoError(t, err)
		out.WriteString("---\n" + own(name, string(data)) + "\n")
	}
	return out.String()
}

var denialMessage = regexp.MustCompile(`admission webhook "(\w+\.)?validate\.overrule\.dev" denied the request: `)

// requireDenied requires that Overrule denied a write with a reason code, and that the
// message names the command that shows who is allowed to override.
func requireDenied(t *testing.T, got env.Result, s *cases.Command) {
	t.Helper()
	require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
	assert.Regexp(t, denialMessage, got.Stderr)
	says := append([]string{string(s.Denied) + ": "}, s.Says...)
	if s.Denied == "OverrideRemoved" || s.Denied == "OverrideEvaded" {
		says = append(says, "kubectl auth can-i override ")
	}
	for _, part := range says {
		assert.Contains(t, got.Stderr, part)
	}
}

// kubectlCases returns cases that have each reason code once.
func kubectlCases(t *testing.T) []cases.Case {
	t.Helper()
	names := map[string]bool{
		"constraint-evaded-by-a-value-it-cannot-read": true, "delete-a-gateway-policy": true, "invalid-cel-does-not-compile": true,
		"limit-shadowed": true, "nopath": true, "overridden-as-a-whole": true, "override-evaded-by-a-parent-that-is-not-read": true,
		"override-removed-by-right": true, "override-weakened-by-a-gate": true, "requirement-unmet-by-a-deletion": true,
		"target-gateway-is-missing": true, "too-many-conditions": true, "trigger-hostname-outside": true, "unset-of-an-override": true,
	}
	var out []cases.Case
	for _, one := range cases.Load(t) {
		if names[one.File] {
			out = append(out, one)
		}
	}
	require.Len(t, out, len(names))
	return out
}

// compare makes a change with kubectl, and compares the output.
func (c *cluster) compare(t *testing.T, who, file string, change *cases.Change) {
	t.Helper()
	verb := map[string]string{"CREATE": "create", "UPDATE": "replace", "DELETE": "delete"}[change.Operation]
	got := c.KubectlWith(manifest(t, file, []cases.Object{change.Object}), "--as="+who, verb, "-f", "-")
	if change.Verdict.Allowed {
		succeed(t, got)
	} else {
		require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
		assert.Regexp(t, denialMessage, got.Stderr)
	}
	for _, f := range change.Verdict.Reasons {
		assert.Contains(t, got.Stderr, string(f.Code)+": ")
	}
	assert.Equal(t, min(cases.Shown(change.Verdict.Warnings), 11), strings.Count(got.Stderr, "Warning: "), got.Stderr)
}

// sequences are the rows with users, waits or writes at the same
// moment of their own. All have the world of the other entries.
var sequences = map[string]func(*testing.T, testNamespaces){
	"who-may":                  checkCommandOfDenial,
	"definition-second-rights": rightsOnSecondDefinition,
	"definition-unconverted":   failedConversion,
	"profiles-at-once":         deleteProfilesConcurrently,
}

// sequenceObjects returns the override of a sequence's own kind.
func sequenceObjects(t *testing.T, name string) []cases.Object {
	t.Helper()
	kind := map[string]string{"definition-second-rights": "Tint", "definition-unconverted": "Rust", "profiles-at-once": "Cobalt"}[name]
	if kind == "" {
		return nil
	}
	return []cases.Object{{Object: map[string]any{
		"apiVersion": "policies.example.com/v1", "kind": kind, "metadata": map[string]any{"namespace": "infra", "name": "gw-coat"},
		"spec": map[string]any{
			"targetRef": map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"},
			"overrides": map[string]any{"colors": map[string]any{"wall": "red"}},
		},
	}}}
}

func (g testNamespaces) as(user string, args ...string) env.Result {
	return g.c.Kubectl(append([]string{"--as", user}, args...)...)
}

var canICommand = regexp.MustCompile(`kubectl (auth can-i override \S+ -n \S+)`)

// checkCommandOfDenial runs the command that a denial names: it reports correctly who is
// allowed to override, including a user with the right for this policy only.
func checkCommandOfDenial(t *testing.T, g testNamespaces) {
	const delegate, neighbour = "delegate", "neighbour"
	rule := rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}}
	change, override, another := rule, rule, rule
	change.Verbs = []string{"get", "delete"}
	override.Verbs, override.ResourceNames = []string{"override"}, []string{"gw-auth"}
	another.Verbs, another.ResourceNames = []string{"override"}, []string{"another"}
	g.c.MustAddUser(t, delegate, nil, change, override)
	g.c.MustAddUser(t, neighbour, nil, change, another)

	removal := []string{"-n", g.infra, "delete", "authpolicy/gw-auth"}
	denial := &cases.Command{Denied: "OverrideRemoved"}
	got := g.as(writer, removal...)
	requireDenied(t, got, denial)
	line := canICommand.FindStringSubmatch(got.Stderr)
	require.NotEmpty(t, line, got.Stderr)
	assert.Equal(t, "auth can-i override authpolicies.kuadrant.io/gw-auth -n "+g.infra, line[1])
	for user, may := range map[string]string{writer: "no\n", neighbour: "no\n", delegate: "yes\n", overrider: "yes\n"} {
		assert.Equal(t, may, g.as(user, strings.Fields(line[1])...).Stdout, user)
	}
	requireDenied(t, g.as(neighbour, removal...), denial)
	got = g.as(delegate, removal...)
	succeed(t, got)
	assert.Contains(t, got.Stderr, "override rules.authentication.sso of AuthPolicy "+g.infra+"/gw-auth")
}
