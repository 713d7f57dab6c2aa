package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// pluginPlatforms are those of the Makefile.
var pluginPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// built is a small program for each platform, as arguments of the commands.
func built(t *testing.T, platforms ...string) []string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/small\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println(\"it runs\") }\n"), 0o600))
	var out []string
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		path := filepath.Join(dir, goos+"_"+goarch)
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, ".")
		build.Dir = dir
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
		said, err := build.CombinedOutput()
		require.NoError(t, err, "%s", said)
		out = append(out, platform+"="+path)
	}
	return out
}

// here is the platform that the tests run on.
func here() string { return runtime.GOOS + "/" + runtime.GOARCH }

func pathOf(arg string) string {
	_, path, _ := strings.Cut(arg, "=")
	return path
}

// release runs the command.
func release(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// contents are the files of a folder.
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

func TestWhatIsNoBinaryForThePlatformIsRefused(t *testing.T) {
	arg := built(t, here())[0]
	path := pathOf(arg)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no platform":           {[]string{path}, "is no OS/ARCH=BINARY, such as linux/arm64=bin/overrule"},
		"half a platform":       {[]string{"linux=" + path}, "is no OS/ARCH=BINARY"},
		"no file":               {[]string{here() + "="}, "is no OS/ARCH=BINARY"},
		"another platform":      {[]string{"plan9/mips=" + path}, path + " is for " + here() + " and not for plan9/mips: build it with GOOS=plan9 GOARCH=mips"},
		"twice the same":        {[]string{arg, arg}, here() + " is given twice: leave one out"},
		"a file of text":        {[]string{here() + "=" + text}, "read what " + text + " was built from: "},
		"one that is not there": {[]string{here() + "=" + text + "2"}, "read what " + text + "2 was built from: could not read Go build info: open "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"image", "plugin"} {
				out := filepath.Join(t.TempDir(), "out")
				_, err := release(t, append([]string{verb, "--out", out}, c.args...)...)
				require.ErrorContains(t, err, c.says)
				assert.NoFileExists(t, out)
			}
		})
	}
}
