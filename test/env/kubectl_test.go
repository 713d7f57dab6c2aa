package env

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake returns a user whose kubectl is a shell script.
func fake(t *testing.T, script string) *User {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "kubectl")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return &User{Kubeconfig: filepath.Join(dir, "kubeconfig"), home: dir, assets: assets(dir)}
}

func TestKubectlReturnsWhatItWroteAndItsExitCode(t *testing.T) {
	u := fake(t, `cat; echo "$@"; echo problem >&2; exit 3`)
	got := u.KubectlWith("stdin ", "get", "pods")
	assert.Equal(t, Result{Stdout: "stdin get pods\n", Stderr: "problem\n", Code: 3}, got)
}

func TestApplyReadsStdin(t *testing.T) {
	u := fake(t, `cat; echo "$@"`)
	assert.Equal(t, Result{Stdout: "manifest\napply -f - --dry-run=server\n"}, u.Apply("manifest\n", "--dry-run=server"))
}

func TestKubectlIgnoresCallersConfig(t *testing.T) {
	t.Setenv("KUBECONFIG", "mine")
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "mine")
	t.Setenv("HOME", "mine")
	t.Setenv("TZ", "UTC")
	u := fake(t, `echo "$HOME $KUBECONFIG $TZ $KUBECTL_EXTERNAL_DIFF"`)
	assert.Equal(t, u.home+" "+u.Kubeconfig+" UTC \n", u.Kubectl().Stdout)
	assert.Contains(t, u.Environ("/plugins"), "PATH="+string(u.assets)+":/plugins:"+os.Getenv("PATH"))
}

func TestMissingKubectl(t *testing.T) {
	u := &User{assets: assets(t.TempDir())}
	got := u.Kubectl("get", "pods")
	assert.Equal(t, -1, got.Code)
	assert.Contains(t, got.Stderr, "no such file or directory")
}
