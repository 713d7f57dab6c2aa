//go:build integration

package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/tables"
)

// TestMain lets the tests share control planes.
func TestMain(m *testing.M) { env.Main(m) }

func TestServerRights(t *testing.T) {
	cluster := env.Start(t)
	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("base")))
	server := serverAccount(t, cluster)
	env.Soon(t, func() bool { return can(t, server, "list", "namespaces", "-A") }, "the rights are not in force")

	for name, test := range tables.Read[map[string]struct {
		Ask string
		May bool
	}](t, "testdata/server-rights.yaml") {
		t.Run(name, func(t *testing.T) {
			question := strings.Fields(test.Ask)
			assert.Equal(t, test.May, can(t, server, question[0], question[1:]...), test.Ask)
		})
	}
}

// can asks the API server as that user.
func can(t *testing.T, user *env.User, verb string, object ...string) bool {
	t.Helper()
	answer := user.Kubectl(append([]string{"auth", "can-i", verb}, object...)...)
	require.Contains(t, []string{"yes", "no"}, strings.TrimSpace(answer.Stdout), answer.Stderr)
	require.NotContains(t, answer.Stderr, "doesn't have a resource type", "the arguments are invalid")
	return answer.Code == 0
}

func serverAccount(t *testing.T, cluster *env.Env) *env.User {
	t.Helper()
	account, err := cluster.ServiceAccount(t.Context(), namespace, "overrule")
	require.NoError(t, err)
	return account
}
