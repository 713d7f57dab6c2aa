//go:build integration

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The server parses its arguments before it prints its help, and rejects unknown
// ones.
func TestServerKnowsTheArgumentsOfEveryInstallation(t *testing.T) {
	server := filepath.Join(root, "bin", "overrule") // of make build
	for _, dir := range installations {
		args := append(deployment(t, dir).Spec.Template.Spec.Containers[0].Args, "--help")
		out, err := exec.CommandContext(t.Context(), server, args...).CombinedOutput()
		require.NoErrorf(t, err, "%s: %s", dir, out)
	}
	require.Error(t, exec.CommandContext(t.Context(), server, "--no-such-flag", "--help").Run())
}
