//go:build long

package pipelines

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		programs  []string // that are on the PATH
		goFails   bool
		variables map[string]string
		code      int
		want      string // what go was called with
		path      bool   // whether the folder is added to the PATH
	}{
		"a plugin on the PATH is used": {programs: []string{"kubectl-overrule", "go"}, variables: map[string]string{"OVERRULE_VERSION": "v1.2.3"}},
		"a version is installed from the module": {
			programs: []string{"go"}, variables: map[string]string{"OVERRULE_VERSION": "v1.2.3"}, want: "install overrule.dev/overrule/cmd/kubectl-overrule@v1.2.3", path: true,
		},
		"without a version the sources of the action are built": {programs: []string{"go"}, variables: map[string]string{"OVERRULE_REF": "v0.1.0"}, want: "build -trimpath -ldflags -s -w -X overrule.dev/overrule/internal/build.version=v0.1.0 -o FOLDER/ ./cmd/kubectl-overrule", path: true},
		"a failed build is an error":                            {programs: []string{"go"}, goFails: true, code: 2, want: "build -trimpath -ldflags -s -w -X overrule.dev/overrule/internal/build.version=dev -o FOLDER/ ./cmd/kubectl-overrule"},
		"without go it is an error":                             {code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			r := &repository{t: t, dir: temp, programs: filepath.Join(temp, "programs")}
			require.NoError(t, os.Mkdir(r.programs, 0o755))
			log, folder := filepath.Join(temp, "log"), filepath.Join(temp, "new folder")
			script := "#!/bin/sh\necho \"$*\" >>'" + log + "'\n"
			if c.goFails {
				script += "exit 1\n"
			}
			for _, program := range c.programs {
				require.NoError(t, os.WriteFile(filepath.Join(r.programs, program), []byte(script), 0o755))
			}
			variables := map[string]string{"PATH": r.programs + ":" + coreutils(t), "GITHUB_PATH": filepath.Join(temp, "path")}
			maps.Copy(variables, c.variables)
			got := r.run(temp, variables, "/bin/bash", filepath.Join(root, "examples/pipelines/scripts/install.sh"), folder)
			assert.Equal(t, c.code, got.code, "%s%s", got.stdout, got.stderr)
			called, _ := os.ReadFile(log)
			assert.Equal(t, strings.ReplaceAll(c.want, "FOLDER", folder), strings.TrimSpace(string(called)))
			path, _ := os.ReadFile(variables["GITHUB_PATH"])
			assert.Equal(t, c.path, string(path) == folder+"\n", string(path))
			assert.Equal(t, c.code > 0, len(annotations(got.stdout)) == 1)
		})
	}
}

func TestInstallOfCopiedScripts(t *testing.T) {
	t.Parallel()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	temp := t.TempDir()
	scripts := filepath.Join(temp, "repository", "ci", "overrule")
	require.NoError(t, os.CopyFS(scripts, os.DirFS(filepath.Join(root, "examples/pipelines/scripts"))))
	require.NoError(t, os.WriteFile(filepath.Join(temp, "go"), []byte("#!/bin/sh\n"), 0o755))
	r := &repository{t: t, dir: temp}
	got := r.run(temp, map[string]string{"PATH": temp + ":" + coreutils(t)}, "/bin/bash", filepath.Join(scripts, "install.sh"), "out")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, "overrule: no sources found: set OVERRULE_VERSION, or install kubectl-overrule before this step\n", got.stderr)
}

// coreutils returns a folder with the programs that the script runs, and no others.
func coreutils(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"mkdir", "dirname"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}
