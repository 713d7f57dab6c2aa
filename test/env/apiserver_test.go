//go:build integration

package env_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

func hangs(t *testing.T, e *env.Env) {
	require.NoError(t, e.PauseAPIServer())
	hung := e.Kubectl("get", "--raw", "/livez", "--request-timeout=1s")
	require.NoError(t, e.ResumeAPIServer())
	assert.Equal(t, 1, hung.Code, "a suspended API server does not answer")

	got := e.Kubectl("get", "--raw", "/livez")
	assert.Equal(t, "ok", got.Stdout, got.Stderr)
}

// restarts leaves the API server running.
func restarts(t *testing.T, e *env.Env) {
	host := e.Config.Host
	reader := e.MustAddUser(t, "stays", nil)
	made := e.Kubectl("create", "configmap", "stays")
	require.Zero(t, made.Code, made.Stderr)

	require.NoError(t, e.StopAPIServer())
	require.ErrorIs(t, e.PauseAPIServer(), env.ErrNoProcess)
	gone := e.Kubectl("get", "configmap", "stays")
	assert.Equal(t, 1, gone.Code)
	assert.Contains(t, gone.Stderr, "was refused")

	require.NoError(t, e.StartAPIServer(t.Context()))
	got := e.Kubectl("get", "configmap", "stays", "-o", "name")
	assert.Equal(t, "configmap/stays\n", got.Stdout, "stored objects exist, and the admin's kubeconfig is valid: %s", got.Stderr)
	who := reader.Kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	assert.Equal(t, "stays", who.Stdout, "an existing user is authenticated: %s", who.Stderr)
	assert.Equal(t, host, e.Config.Host)

	require.NoError(t, e.KillAPIServer())
	require.NoError(t, e.RestartAPIServer(t.Context()))
	got = e.Kubectl("get", "configmap", "stays", "-o", "name")
	assert.Equal(t, "configmap/stays\n", got.Stdout, "after it was killed: %s", got.Stderr)
}
