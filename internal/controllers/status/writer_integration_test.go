//go:build integration

package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/controllers/status"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
)

const named = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: NAME}
spec: {group: example.com, kind: Paint, class: inherited, targets: {fields: [FIELD]}}
`

func profile(name, field string) string {
	return strings.NewReplacer("NAME", name, "FIELD", field).Replace(named)
}

// TestWriterOnAPIServer runs a Writer with only the permission to write statuses.
func TestWriterOnAPIServer(t *testing.T) {
	e := env.Start(t)
	writes(t, e)
	condition := func(name, field string) string {
		return e.Kubectl("get", "policyprofile", name, "-o", "jsonpath={.status.conditions[0]."+field+"}").Stdout
	}
	becomes := func(name, reason string) {
		t.Helper()
		env.Soon(t, func() bool { return condition(name, "reason") == reason }, "%s is not %s", name, reason)
	}
	apply := func(text string) {
		t.Helper()
		got := e.Apply(text, "--server-side", "--force-conflicts")
		require.Zero(t, got.Code, got.Stderr)
	}

	apply(profile("older", "targetRef"))
	becomes("older", "Accepted")
	assert.Equal(t, "True", condition("older", "status"))
	time.Sleep(time.Second) // creation times have a resolution of seconds
	apply(profile("younger", "targetRefs"))
	becomes("younger", "Conflicted")
	assert.Contains(t, condition("younger", "message"), "PolicyProfile older, ")
	assert.Contains(t, e.Kubectl("get", "policyprofiles").Stdout, "Conflicted", "shown by kubectl")

	apply(profile("older", "..odd.."))
	becomes("older", "Invalid")
	assert.Contains(t, condition("older", "message"), `spec.targets.fields[0]: Invalid value: "..odd.."`)
	assert.Equal(t, "2", condition("older", "observedGeneration"))
	becomes("younger", "Accepted")
	version := e.Kubectl("get", "policyprofile", "younger", "-o", "jsonpath={.metadata.resourceVersion}").Stdout
	apply(profile("youngest", "targetRef")) // by its name, too, should a second be shared
	becomes("youngest", "Conflicted")
	assert.Equal(t, version, e.Kubectl("get", "policyprofile", "younger", "-o", "jsonpath={.metadata.resourceVersion}").Stdout,
		"a correct status is not written again")
}

// writes runs a Watcher and a Writer until the end of the test.
func writes(t *testing.T, e *env.Env) {
	t.Helper()
	watcher, err := cache.New(e.Config, snapshot.New(cache.Sources...), cache.Options{})
	require.NoError(t, err)
	user := e.MustAddUser(t, "writer", nil, rbacv1.PolicyRule{
		APIGroups: []string{"overrule.dev"}, Resources: []string{"policyprofiles/status", "policyconstraints/status", "clusterpolicyconstraints/status"}, Verbs: []string{"patch"},
	})
	client, err := dynamic.NewForConfig(user.Config)
	require.NoError(t, err)
	writer := &status.Writer{
		Client: client, Statuses: watcher.Statuses, Changed: watcher.StatusesChanged(), Log: testr.New(t),
	}
	process.Run(t, watcher.Start, writer.Start)
}
