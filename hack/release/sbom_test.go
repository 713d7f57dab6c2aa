package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program of this module stands in for both: it has dependencies, and builds
// fast.
func TestMakeSBOMListsEveryModule(t *testing.T) {
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "overrule"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Link(filepath.Join(bin, "overrule"), filepath.Join(bin, "kubectl-overrule")))
	built, err := buildinfo.ReadFile(filepath.Join(bin, "overrule"))
	require.NoError(t, err)
	want := map[string]string{"std": built.GoVersion}
	for _, dep := range built.Deps {
		want[dep.Path] = dep.Version
	}
	require.Contains(t, want, "github.com/google/go-containerregistry")

	release := filepath.Join(t.TempDir(), "release")
	said, err := runMake(t, "sbom", "BIN="+bin, "RELEASE="+release, "VERSION=v1.2.3")
	require.NoError(t, err, said)
	for _, program := range []string{"overrule", "kubectl-overrule"} {
		content, err := os.ReadFile(filepath.Join(release, program+".cdx.json"))
		require.NoError(t, err)
		assert.Contains(t, said, filepath.Join(release, program+".cdx.json")+"\n")
		var bom struct {
			BOMFormat, SpecVersion string
			Metadata               struct {
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version, PURL string }
		}
		require.NoError(t, json.Unmarshal(content, &bom))
		assert.Equal(t, "CycloneDX 1.6", bom.BOMFormat+" "+bom.SpecVersion)
		assert.Equal(t, built.Main.Path+" v1.2.3", bom.Metadata.Component.Name+" "+bom.Metadata.Component.Version)
		listed := map[string]string{}
		for _, c := range bom.Components {
			listed[c.Name] = c.Version
			assert.Contains(t, c.PURL, "pkg:golang/", c.Name)
		}
		assert.Equal(t, want, listed, program)
	}
}
