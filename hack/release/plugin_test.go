package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

const manifestFile = "overrule.yaml"

// tool builds a program that go.mod pins.
func tool(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", out, path).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return out
}

// krew itself validates the manifest, downloads each archive, compares its sum,
// unpacks it and links the plugin.
func TestKrewInstallsThePluginOnEachPlatform(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewServer(http.StripPrefix("/v1.2.3/", http.FileServer(http.Dir(dir))))
	defer server.Close()
	licence := filepath.Join(t.TempDir(), "LICENSE")
	require.NoError(t, os.WriteFile(licence, []byte("do as you like\n"), 0o600))
	binaries := built(t, pluginPlatforms...)
	_, err := release(t, append([]string{"plugin", "--version", "v1.2.3", "--out", dir, "--url", server.URL + "/v1.2.3", "--with", licence}, binaries...)...)
	require.NoError(t, err)
	manifest := filepath.Join(dir, manifestFile)
	said, err := exec.CommandContext(t.Context(), tool(t, "sigs.k8s.io/krew/cmd/validate-krew-manifest"), "-skip-install", "-manifest", manifest).CombinedOutput()
	require.NoError(t, err, "%s", said)

	krew := tool(t, "sigs.k8s.io/krew/cmd/krew")
	for _, arg := range binaries {
		platform, path, _ := strings.Cut(arg, "=")
		t.Run(platform, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(platform, "/")
			home := t.TempDir()
			install := exec.CommandContext(t.Context(), krew, "install", "--manifest", manifest)
			install.Env = append(os.Environ(), "KREW_ROOT="+home, "KREW_OS="+goos, "KREW_ARCH="+goarch, "KREW_NO_UPGRADE_CHECK=1")
			said, err := install.CombinedOutput()
			require.NoError(t, err, "%s", said)
			installed := filepath.Join(home, "store", "overrule", "v1.2.3")
			name := "kubectl-overrule"
			if goos == "windows" {
				name += ".exe"
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			got := contents(t, installed)
			assert.Equal(t, string(want), got[name])
			assert.Equal(t, "do as you like\n", got["LICENSE"])
			assert.Len(t, got, 2)
			if platform == here() {
				said, err := exec.CommandContext(t.Context(), filepath.Join(home, "bin", "kubectl-overrule")).CombinedOutput()
				require.NoError(t, err)
				assert.Equal(t, "it runs\n", string(said))
			}
		})
	}
}

func TestTheManifestNamesEachArchive(t *testing.T) {
	dir := t.TempDir()
	said, err := release(t, append([]string{"plugin", "--version", "v1.2.3-rc.1", "--out", dir, "--url", "https://example.com/d/"}, built(t, "linux/arm64", "windows/amd64")...)...)
	require.NoError(t, err)
	files := contents(t, dir)
	const linux, windows = "kubectl-overrule-v1.2.3-rc.1-linux-arm64.tar.gz", "kubectl-overrule-v1.2.3-rc.1-windows-amd64.tar.gz"
	sumOf := func(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(files[name]))) }
	assert.Equal(t, sumOf(linux)+"  "+linux+"\n"+sumOf(windows)+"  "+windows+"\n", files["SHA256SUMS"])
	for _, name := range []string{linux, windows, "SHA256SUMS", manifestFile} {
		assert.Contains(t, said, filepath.Join(dir, name)+"\n")
	}
	assert.Len(t, files, 4)

	var p index.Plugin
	require.NoError(t, yaml.UnmarshalStrict([]byte(files[manifestFile]), &p))
	assert.Equal(t, "overrule", p.Name)
	assert.Equal(t, "v1.2.3-rc.1", p.Spec.Version)
	require.Len(t, p.Spec.Platforms, 2)
	for i, want := range []struct{ name, bin, os, arch string }{{linux, "kubectl-overrule", "linux", "arm64"}, {windows, "kubectl-overrule.exe", "windows", "amd64"}} {
		got := p.Spec.Platforms[i]
		assert.Equal(t, "https://example.com/d/"+want.name, got.URI)
		assert.Equal(t, sumOf(want.name), got.Sha256)
		assert.Equal(t, want.bin, got.Bin)
		assert.Equal(t, map[string]string{"os": want.os, "arch": want.arch}, got.Selector.MatchLabels)
		assert.Equal(t, []index.FileOperation{{From: want.bin, To: "."}}, got.Files)
		assert.Equal(t, []string{want.bin}, packed(t, files[want.name]))
	}
}

// packed are the names of the files of an archive.
func packed(t *testing.T, content string) (names []string) {
	t.Helper()
	unzipped, err := gzip.NewReader(strings.NewReader(content))
	require.NoError(t, err)
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, header.Name)
	}
}

func TestTheSameInputGivesTheSameArchives(t *testing.T) {
	var all []map[string]string
	for range 2 {
		dir := t.TempDir()
		_, err := release(t, append([]string{"plugin", "--version", "v1.2.3", "--out", dir}, built(t, "linux/amd64", "linux/arm64")...)...)
		require.NoError(t, err)
		all = append(all, contents(t, dir))
	}
	assert.Equal(t, all[0], all[1])
	assert.NotContains(t, all[0], manifestFile, "nobody said where they can be downloaded")
}

func TestWhatKrewWouldRefuseIsNotWritten(t *testing.T) {
	binaries := built(t, here())
	missing := filepath.Join(t.TempDir(), "LICENSE")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a folder of this machine": {[]string{"--version=v1.2.3", "--url=/tmp"}, "--url=/tmp is no address to download from: give https://HOST/FOLDER"},
		"a host alone":             {[]string{"--version=v1.2.3", "--url=example.com"}, "--url=example.com is no address to download from"},
		"an address of no kind":    {[]string{"--version=v1.2.3", "--url=ftp://example.com"}, "is no address to download from"},
		"no address at all":        {[]string{"--version=v1.2.3", "--url=:"}, "is no address to download from"},
		"a commit for a version":   {[]string{"--version=8b5192a", "--url=https://example.com"}, "--version=8b5192a: krew takes versions such as v1.2.3 alone: tag the commit, or leave --url out"},
		"half a version":           {[]string{"--version=v1.2", "--url=https://example.com"}, "--version=v1.2: krew takes versions such as v1.2.3 alone"},
		"a file that is not there": {[]string{"--with=" + missing}, "archive for " + here() + ": read what goes into it: open " + missing},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := release(t, append(append([]string{"plugin", "--out", dir}, c.args...), binaries...)...)
			require.ErrorContains(t, err, c.says)
			assert.Empty(t, contents(t, dir))
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := release(t, append([]string{"plugin", "--out", file}, binaries...)...)
	require.ErrorContains(t, err, "make the folder for archives: ")
	t.Setenv("SOURCE_DATE_EPOCH", "soon")
	_, err = release(t, append([]string{"plugin", "--out", t.TempDir()}, binaries...)...)
	require.ErrorContains(t, err, "SOURCE_DATE_EPOCH=soon")
}
