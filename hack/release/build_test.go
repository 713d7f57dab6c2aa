package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeGo records how it is called to build, and writes a file in place of each
// program.
const fakeGo = `#!/usr/bin/env bash
set -eu
[ "$1" = build ] || exec %q "$@"
echo "$GOOS/$GOARCH CGO_ENABLED=$CGO_ENABLED $*" >>%q
out= program=
while [ $# -gt 0 ]; do
	[ "$1" != -o ] || out=$2
	program=$1
	shift
done
mkdir -p "$out"
program=$(basename "$program")
[ "$GOOS" != windows ] || program+=.exe
echo "$program for $GOOS/$GOARCH" >"$out/$program"
`

// The programs that are packed are built as those of make build, which other tests
// run.
func TestMakeBuildsForEachPlatformAsMakeBuildDoes(t *testing.T) {
	dir := t.TempDir()
	goTool, err := exec.LookPath("go")
	require.NoError(t, err)
	log, release := filepath.Join(dir, "log"), filepath.Join(dir, "release")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), fmt.Appendf(nil, fakeGo, goTool, log), 0o700))
	cmd := exec.CommandContext(t.Context(), "make", "-C", root, "build", "image", "dist", "BIN="+filepath.Join(dir, "bin"), "RELEASE="+release,
		"VERSION=v1.2.3", "REVISION=abc", "PLATFORMS=linux/amd64 linux/arm64", "PLUGIN_PLATFORMS=darwin/arm64 windows/amd64")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GOOS=", "GOARCH=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	content, err := os.ReadFile(log)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	flags, _, _ := strings.Cut(lines[0], " -o ")
	require.Contains(t, flags, "=v1.2.3 ", "the version of make build")
	var want []string
	for _, b := range [][2]string{{"linux/amd64", "overrule"}, {"linux/arm64", "overrule"}, {"darwin/arm64", "kubectl-overrule"}, {"windows/amd64", "kubectl-overrule"}} {
		want = append(want, b[0]+strings.TrimPrefix(flags, "/")+" -o "+filepath.Join(release, strings.ReplaceAll(b[0], "/", "_"))+"/ ./cmd/"+b[1])
	}
	assert.Equal(t, want, lines[1:])

	_, server := onlyFile(t, imageFor(t, readLayout(t, filepath.Join(release, "image"), "v1.2.3"), "linux/arm64"))
	assert.Equal(t, "overrule for linux/arm64\n", server)
	assert.FileExists(t, filepath.Join(release, "dist", "kubectl-overrule-v1.2.3-windows-amd64.tar.gz"))
}
