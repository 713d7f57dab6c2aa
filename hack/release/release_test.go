package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// built writes a small file in place of the program of each platform, where make
// builds them, and returns the folder to pass as RELEASE.
func built(t *testing.T, program string, platforms ...string) string {
	t.Helper()
	release := t.TempDir()
	for _, platform := range platforms {
		dir := filepath.Join(release, strings.ReplaceAll(platform, "/", "_"))
		require.NoError(t, os.Mkdir(dir, 0o700))
		name := program
		if strings.HasPrefix(platform, "windows/") {
			name += ".exe"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(program+" for "+platform), 0o600))
	}
	return release
}

// runMake runs make without building the programs, and returns its output.
func runMake(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"-C", root, "-o", "build", "-o", "server-binaries", "-o", "plugin-binaries"}, args...)
	out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput()
	return string(out), err
}

// contents returns the files below a folder by their paths.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		out[path] = string(content)
		return err
	}))
	return out
}
