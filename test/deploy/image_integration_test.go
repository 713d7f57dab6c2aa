//go:build integration

package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/test/env"
)

// The command of the Dockerfile, without a container.
func TestDockerfileBuildsForTargetPlatform(t *testing.T) {
	env.Long(t)
	command := regexp.MustCompile(`(?s)\nRUN (GOOS=.*?[^\\])\n`).FindStringSubmatch(read(t, "Dockerfile"))
	require.NotNil(t, command)
	server := filepath.Join(t.TempDir(), "overrule")
	script := strings.Replace(command[1], "-o /overrule ", "-o "+server+" ", 1)
	require.NotEqual(t, command[1], script)
	sh := exec.CommandContext(t.Context(), "sh", "-c", script)
	sh.Dir = root
	sh.Env = append(os.Environ(), "CGO_ENABLED=0", "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH, "VERSION=v1.2.3", "REVISION=abc")
	out, err := sh.CombinedOutput()
	require.NoError(t, err, "%s", out)

	said, err := exec.CommandContext(t.Context(), server, "version", "-o", "json").Output()
	require.NoError(t, err)
	var info build.Info
	require.NoError(t, json.Unmarshal(said, &info))
	assert.Equal(t, "v1.2.3", info.Version)
	assert.Equal(t, "abc", info.Revision)
	assert.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, info.Platform)
}

func TestDockerfileCrossCompiles(t *testing.T) {
	dockerfile := read(t, "Dockerfile")
	assert.Contains(t, dockerfile, "\nFROM --platform=$BUILDPLATFORM golang:")
	assert.Contains(t, dockerfile, "\nARG TARGETOS TARGETARCH\n", "variables of buildx, in the build stage")
	assert.NotContains(t, dockerfile[strings.Index(dockerfile, "\nFROM scratch\n"):], "BUILDPLATFORM")
}
