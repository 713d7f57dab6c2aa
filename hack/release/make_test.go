//go:build integration

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const version = "v1.2.3"

// platform is one that this machine runs and that an image is made for.
var platform = "linux/" + runtime.GOARCH

// makes runs make with an output folder of its own, and returns that.
func makes(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	args = append(args, "-C", root, "RELEASE="+dir, "VERSION="+version, "PLATFORMS="+platform, "PLUGIN_PLATFORMS="+platform)
	said, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return dir
}

// versionOf is what a program of ours says of itself.
func versionOf(t *testing.T, path string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), path, "version", "-o", "json").Output()
	require.NoError(t, err)
	var info struct{ Version string }
	require.NoError(t, json.Unmarshal(said, &info))
	return info.Version
}

func TestMakeImageHasTheServerInIt(t *testing.T) {
	digests := map[string]bool{}
	for range 2 {
		index, err := readLayout(filepath.Join(makes(t, "image"), "image"))
		require.NoError(t, err)
		digest, err := index.Digest()
		require.NoError(t, err)
		digests[digest.String()] = true
		if len(digests) > 1 {
			continue
		}
		_, content := onlyFile(t, platformOf(t, index, platform))
		server := filepath.Join(t.TempDir(), "overrule")
		require.NoError(t, os.WriteFile(server, content, 0o700))
		assert.Equal(t, version, versionOf(t, server))
	}
	assert.Len(t, digests, 1, "the same commit gives the same image")
}

func TestMakePushWantsToKnowWhereTo(t *testing.T) {
	said, err := exec.CommandContext(t.Context(), "make", "-C", root, "push", "VERSION="+version).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(said), "push: say where to: make push IMAGE=REGISTRY/overrule:"+version)
}

func TestMakeDistHasThePluginInIt(t *testing.T) {
	dist := filepath.Join(makes(t, "dist", "DIST_URL=https://example.com"), "dist")
	files := contents(t, dist)
	archive := "kubectl-overrule-" + version + "-" + strings.ReplaceAll(platform, "/", "-") + ".tar.gz"
	assert.Contains(t, files, manifestFile)
	require.Contains(t, files, archive)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "SHA256SUMS")
	check.Dir = dist
	said, err := check.CombinedOutput()
	require.NoError(t, err, "%s", said)

	out := t.TempDir()
	said, err = exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(dist, archive), "-C", out).CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Equal(t, version, versionOf(t, filepath.Join(out, "kubectl-overrule")))
}

// What it lists is what the linker put into the program.
func TestMakeSBOMListsEveryModule(t *testing.T) {
	bin := t.TempDir()
	dir := makes(t, "sbom", "BIN="+bin)
	for _, program := range []string{"overrule", "kubectl-overrule"} {
		file, err := os.Open(filepath.Join(dir, program+".cdx.json"))
		require.NoError(t, err)
		var bom cyclonedx.BOM
		require.NoError(t, cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bom))
		require.NoError(t, file.Close())
		assert.Equal(t, "overrule.dev/overrule@"+version, bom.Metadata.Component.Name+"@"+bom.Metadata.Component.Version)
		listed := map[string]string{}
		for _, c := range *bom.Components {
			listed[c.Name] = c.Version
			assert.True(t, strings.HasPrefix(c.PackageURL, "pkg:golang/"), c.Name)
		}

		built, err := buildinfo.ReadFile(filepath.Join(bin, program))
		require.NoError(t, err)
		want := map[string]string{"std": built.GoVersion}
		for _, dep := range built.Deps {
			want[dep.Path] = dep.Version
		}
		assert.Equal(t, want, listed, program)
		assert.Contains(t, listed, "sigs.k8s.io/gateway-api", program)
	}
}
