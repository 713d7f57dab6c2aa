//go:build integration

package inprocess_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/inprocess"
)

const (
	settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {a: VALUE}}`
	policy   = `{apiVersion: kuadrant.io/v1, kind: AuthPolicy, metadata: {name: p, namespace: default}, spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, SPEC}}`
	// warned results in a warning of the API server itself.
	warned = `{apiVersion: v1, kind: Pod, metadata: {name: warned, namespace: default, annotations: {container.apparmor.security.beta.kubernetes.io/a: runtime/default}}, spec: {containers: [{name: a, image: a}]}}`
)

// TestMain lets the tests share control planes.
func TestMain(m *testing.M) { env.Main(m) }

// The program is the reference: both run each command, one after the other, and
// have the same output.
func TestItSaysWhatTheProgramSays(t *testing.T) {
	c := inprocess.Start(t)
	for _, command := range []struct {
		stdin string
		args  []string
	}{
		{args: []string{"get", "namespaces", "-o", "name"}},
		{args: []string{"get", "ns/default", "-o", "jsonpath={.metadata.name}"}},
		{args: []string{"get", "authpolicy/none"}},
		{args: []string{"get", "authpolicy/none", "--ignore-not-found"}},
		{args: []string{"get", "nothings"}},
		{args: []string{"get", "configmaps", "-n", "kube-public", "-o", "custom-columns=N:.metadata.name"}},
		{args: []string{"--as", "unprivileged", "get", "secrets"}},
		{args: []string{"create", "namespace", "made", "--dry-run=server"}},
		{args: []string{"create", "namespace", "default"}},
		{args: []string{"create", "-f", "-", "--dry-run=server"}, stdin: warned},
		{args: []string{"apply", "-f", "-", "--dry-run=server"}, stdin: strings.Replace(settings, "VALUE", "one", 1)},
		{args: []string{"apply", "-f", "-", "--server-side", "--dry-run=server"}, stdin: strings.Replace(settings, "VALUE", "one", 1)},
		{args: []string{"apply", "-f", "-"}, stdin: strings.Replace(policy, "SPEC", "strange: 1", 1)},
		{args: []string{"apply", "-f", "-"}, stdin: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, dta: {}}"},
		{args: []string{"apply", "-f", "-"}, stdin: "}"},
		{args: []string{"apply", "-f", "-"}, stdin: "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: a}}"},
		{args: []string{"annotate", "ns/default", "a=b", "--dry-run=server"}},
		{args: []string{"label", "ns/default", "a=b", "--dry-run=server"}},
		{args: []string{"patch", "ns/default", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`, "--dry-run=server"}},
		{args: []string{"patch", "ns/default", "--type=json", "-p", `[{"op":"remove","path":"/spec/nothing"}]`}},
		{args: []string{"replace", "-f", "-", "--dry-run=server"}, stdin: "{apiVersion: v1, kind: Namespace, metadata: {name: default}}"},
		{args: []string{"delete", "configmap", "none"}},
		{args: []string{"delete", "-f", "-", "--ignore-not-found"}, stdin: strings.Replace(settings, "VALUE", "one", 1)},
		{args: []string{"config", "current-context"}}, // runs as the program
	} {
		t.Run(strings.Join(command.args, " "), func(t *testing.T) {
			want := c.User.KubectlWith(command.stdin, command.args...)
			got := c.KubectlWith(command.stdin, command.args...)
			assert.Equal(t, want.Code, got.Code)
			assert.Equal(t, want.Stdout, got.Stdout)
			assert.Equal(t, want.Stderr, fileName.ReplaceAllString(got.Stderr, "STDIN"))
		})
	}
}

// fileName matches the name of the file that replaces stdin.
var fileName = regexp.MustCompile(`[^"\s]*stdin-\d+\.yaml`)

func TestWhatIsStoredIsWhatTheProgramStores(t *testing.T) {
	c := inprocess.Start(t)
	last := c.Kubectl("get", "ns/default", "-o", "jsonpath={.metadata.name}")
	require.Equal(t, env.Result{Stdout: "default"}, last)
	for _, value := range []string{"one", "two"} { // created, and patched
		got := c.Apply(strings.Replace(settings, "VALUE", value, 1))
		require.Zero(t, got.Code, got.Stderr)
		assert.Equal(t, env.Result{}, c.User.KubectlWith(strings.Replace(settings, "VALUE", value, 1), "diff", "-f", "-"), "the program finds no difference")
	}
	assert.Equal(t, env.Result{Stdout: "configmap/settings unchanged\n"}, c.Apply(strings.Replace(settings, "VALUE", "two", 1)))

	t.Run("CRDs are created while it runs", func(t *testing.T) {
		require.NotZero(t, c.Kubectl("get", "glazes").Code)
		got := c.Apply(glaze)
		require.Zero(t, got.Code, got.Stderr)
		env.Soon(t, func() bool { return c.Kubectl("get", "glazes").Code == 0 }, "the kind is not served")
	})
	t.Run("commands run in parallel, each with its own warnings", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				if i%2 == 0 {
					assert.Empty(t, c.Kubectl("get", "namespaces", "-o", "name").Stderr)
					return
				}
				got := c.Kubectl("get", "componentstatuses", "-o", "name")
				assert.Equal(t, "Warning: v1 ComponentStatus is deprecated in v1.19+\n", got.Stderr)
			})
		}
		group.Wait()
	})
	t.Run("a manifest that cannot be written is an error", func(t *testing.T) {
		user := *c.User
		user.Kubeconfig = "/nowhere/kubeconfig"
		lost, err := inprocess.New(&user)
		require.NoError(t, err)
		got := lost.Apply(settings)
		assert.Equal(t, -1, got.Code)
		assert.Contains(t, got.Stderr, "write a manifest: ")
	})
}

const glaze = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: glazes.policies.example.com}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {kind: Glaze, plural: glazes, singular: glaze}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
