//go:build integration

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// The server parses its arguments before it prints its help, and rejects unknown
// ones.
func TestServerKnowsTheArgumentsOfEveryInstallation(t *testing.T) {
	env.Long(t)
	server := filepath.Join(t.TempDir(), "overrule")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", server, "./cmd/overrule")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	for _, dir := range installations {
		args := append(deployment(t, dir).Spec.Template.Spec.Containers[0].Args, "--help")
		out, err := exec.CommandContext(t.Context(), server, args...).CombinedOutput()
		require.NoErrorf(t, err, "%s: %s", dir, out)
	}
	require.Error(t, exec.CommandContext(t.Context(), server, "--no-such-flag", "--help").Run())
}
