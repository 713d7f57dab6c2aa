//go:build integration

package deploy_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/test/env"
)

func TestMakeStampsTheVersionIntoBothPrograms(t *testing.T) {
	env.Long(t)
	const version = "v1.2.3-of-a-test"
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "make", "-C", root, "build", "BIN="+bin, "VERSION="+version).CombinedOutput()
	require.NoError(t, err, "%s", out)
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/gateway-api")
	list.Dir = root
	gatewayAPI, err := list.Output()
	require.NoError(t, err)

	for _, program := range []string{"overrule", "kubectl-overrule"} {
		said, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), "version", "-o", "json").Output()
		require.NoError(t, err, program)
		var info build.Info
		require.NoError(t, json.Unmarshal(said, &info), program)
		assert.Equal(t, version, info.Version, program)
		assert.Equal(t, string(gatewayAPI), info.Libraries["sigs.k8s.io/gateway-api"]+"\n", program)
		assert.Contains(t, info.Libraries, "k8s.io/client-go", program)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "overrule"), "--version").Output()
	require.NoError(t, err)
	assert.Equal(t, "overrule version "+version+"\n", string(said))
}
