package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// krewManifest is what the manifest contains of
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/. Without files,
// krew installs all files of the archive.
type krewManifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Version          string
		ShortDescription string `yaml:"shortDescription"`
		Description      string
		Platforms        []krewPlatform
	}
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	URI, Sha256, Bin string
}

// pluginPlatforms returns the default of PLUGIN_PLATFORMS.
func pluginPlatforms(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	_, platforms, found := strings.Cut(string(makefile), "\nPLUGIN_PLATFORMS ?= ")
	require.True(t, found)
	platforms, _, _ = strings.Cut(platforms, "\n")
	return strings.Fields(platforms)
}

// makeDist runs make dist with the default platforms, and returns the files that
// it writes.
func makeDist(t *testing.T, args ...string) map[string]string {
	t.Helper()
	release := built(t, "kubectl-overrule", pluginPlatforms(t)...)
	out, err := runMake(t, append([]string{"dist", "RELEASE=" + release, "SOURCE_DATE_EPOCH=1700000000"}, args...)...)
	require.NoError(t, err, out)
	files := contents(t, filepath.Join(release, "dist"))
	for name := range files {
		assert.Contains(t, out, filepath.Join(release, "dist", name)+"\n")
	}
	return files
}

func TestMakeDistWritesWhatKrewInstalls(t *testing.T) {
	platforms := pluginPlatforms(t)
	files := makeDist(t, "VERSION=v1.2.3-rc.1", "DIST_URL=https://example.com/d/")
	assert.Len(t, files, len(platforms)+2, "archives, checksums and manifest")

	var manifest krewManifest
	decoder := yaml.NewDecoder(strings.NewReader(files["overrule.yaml"]))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&manifest))
	assert.Equal(t, "krew.googlecontainertools.github.com/v1alpha2", manifest.APIVersion)
	assert.Equal(t, "Plugin", manifest.Kind)
	assert.Equal(t, "overrule", manifest.Metadata.Name)
	assert.Equal(t, "v1.2.3-rc.1", manifest.Spec.Version)
	assert.NotEmpty(t, manifest.Spec.Description)
	assert.Regexp(t, `^[^\r\n]{1,50}$`, manifest.Spec.ShortDescription, "one short line")

	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	require.NoError(t, err)
	var sums string
	var want []krewPlatform
	for _, platform := range platforms {
		goos, arch, _ := strings.Cut(platform, "/")
		archive := "kubectl-overrule-v1.2.3-rc.1-" + goos + "-" + arch + ".tar.gz"
		require.Contains(t, files, archive)
		program := "kubectl-overrule"
		if goos == "windows" {
			program += ".exe"
		}
		p := krewPlatform{URI: "https://example.com/d/" + archive, Sha256: fmt.Sprintf("%x", sha256.Sum256([]byte(files[archive]))), Bin: program}
		p.Selector.MatchLabels = map[string]string{"os": goos, "arch": arch}
		want = append(want, p)
		sums += p.Sha256 + "  " + archive + "\n"
		assert.Equal(t, map[string]string{program: "kubectl-overrule for " + platform, "LICENSE": string(license)}, unpacked(t, files[archive]))
	}
	assert.Equal(t, want, manifest.Spec.Platforms)
	assert.Equal(t, sums, files["SHA256SUMS"])
}

// unpacked returns the files of an archive, and checks what would differ between
// builds.
func unpacked(t *testing.T, archive string) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(strings.NewReader(archive))
	require.NoError(t, err)
	assert.Equal(t, gzip.Header{OS: unzipped.OS}, unzipped.Header, "no name and no time")
	out := map[string]string{}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		mode := int64(0o644)
		if strings.HasPrefix(header.Name, "kubectl-") {
			mode = 0o755
		}
		assert.Equal(t, mode, header.Mode, header.Name)
		assert.Equal(t, time.Unix(1700000000, 0).UTC(), header.ModTime.UTC(), header.Name)
		assert.Equal(t, "0:0 :", fmt.Sprintf("%d:%d %s:%s", header.Uid, header.Gid, header.Uname, header.Gname), header.Name)
		content, err := io.ReadAll(files)
		require.NoError(t, err)
		out[header.Name] = string(content)
	}
}

func TestTheSameInputResultsInTheSameArchives(t *testing.T) {
	first := makeDist(t, "VERSION=v1.2.3")
	assert.Equal(t, first, makeDist(t, "VERSION=v1.2.3"), "built in another folder, later")
	assert.NotContains(t, first, "overrule.yaml", "no DIST_URL")
}

func TestMakeDistWritesNothingForInvalidInput(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a folder":            {[]string{"VERSION=v1.2.3", "DIST_URL=/tmp"}, `dist: invalid DIST_URL "/tmp": must be https://HOST/FOLDER`},
		"a host only":         {[]string{"VERSION=v1.2.3", "DIST_URL=example.com"}, `dist: invalid DIST_URL "example.com"`},
		"another scheme":      {[]string{"VERSION=v1.2.3", "DIST_URL=ftp://example.com"}, `dist: invalid DIST_URL "ftp://example.com"`},
		"a commit":            {[]string{"VERSION=8b5192a", "DIST_URL=https://example.com"}, `dist: invalid VERSION "8b5192a": krew requires one such as v1.2.3; tag the commit, or leave DIST_URL out`},
		"two numbers":         {[]string{"VERSION=v1.2", "DIST_URL=https://example.com"}, `dist: invalid VERSION "v1.2"`},
		"a program missing":   {[]string{"VERSION=v1.2.3", "PLUGIN_PLATFORMS=linux/amd64 plan9/amd64"}, "plan9_amd64/kubectl-overrule"},
		"a date":              {[]string{"VERSION=v1.2.3", "SOURCE_DATE_EPOCH=never"}, "@never"},
		"tar that is not GNU": {[]string{"VERSION=v1.2.3", "TAR=true"}, `dist: "true" is not GNU tar: install it and set TAR`},
	} {
		t.Run(name, func(t *testing.T) {
			release := built(t, "kubectl-overrule", "linux/amd64")
			out, err := runMake(t, append([]string{"dist", "RELEASE=" + release, "PLUGIN_PLATFORMS=linux/amd64"}, c.args...)...)
			require.Error(t, err)
			assert.Contains(t, out, c.says)
			assert.NoDirExists(t, filepath.Join(release, "dist"))
		})
	}
}
