package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionSources(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	in := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}}
	}
	for name, c := range map[string]struct {
		built             debug.BuildInfo
		version, revision string
		want              [2]string
	}{
		"linker flags take precedence":             {debug.BuildInfo{Main: debug.Module{Version: "v9.9.9"}, Settings: in("true")}, "v1.2.3", "abc", [2]string{"v1.2.3", "abc"}},
		"linked version, commit of the repository": {debug.BuildInfo{Settings: in("false")}, "v1.2.3", "", [2]string{"v1.2.3", commit}},
		"go install at a version":                  {debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "", "", [2]string{"v1.2.3", ""}},
		"modified files":                           {debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261121000000-0123456789ab+dirty"}, Settings: in("true")}, "", "", [2]string{"v1.2.4-0.20261121000000-0123456789ab+dirty", commit + "-dirty"}},
		"a build without a repository":             {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", [2]string{"dev", ""}},
		"no build information":                     {debug.BuildInfo{}, "", "", [2]string{"dev", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			info := read(&c.built, c.version, c.revision)
			assert.Equal(t, c.want, [2]string{info.Version, info.Revision})
			assert.Equal(t, runtime.Version(), info.Go)
			assert.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, info.Platform)
		})
	}
}

func TestLibraries(t *testing.T) {
	info := read(&debug.BuildInfo{Deps: []*debug.Module{
		{Path: "k8s.io/api", Version: "v0.37.2"},
		{Path: "k8s.io/client-go", Version: "v0.37.2", Replace: &debug.Module{Path: "example.com/client-go", Version: "v0.0.1"}},
		{Path: "sigs.k8s.io/gateway-api", Version: "v1.6.3", Replace: &debug.Module{Path: "../gateway-api"}},
	}}, "", "")
	assert.Equal(t, map[string]string{"k8s.io/api": "v0.37.2", "k8s.io/client-go": "v0.0.1", "sigs.k8s.io/gateway-api": "../gateway-api"}, info.Libraries)
}

func TestTextOutput(t *testing.T) {
	info := Info{
		Version: "v1.2.3", Go: "go1.26.8", Platform: "linux/arm64",
		Libraries: map[string]string{"sigs.k8s.io/gateway-api": "v1.6.3", "k8s.io/api": "v0.37.2"},
	}
	var out bytes.Buffer
	require.NoError(t, info.write(&out, "overrule", "text"))
	assert.Equal(t, "overrule v1.2.3\nrevision unknown\ngo go1.26.8\nplatform linux/arm64\nk8s.io/api v0.37.2\nsigs.k8s.io/gateway-api v1.6.3\n", out.String())
}

func TestCommandOutput(t *testing.T) {
	var out bytes.Buffer
	run := func(args ...string) error {
		out.Reset()
		cmd := Command("overrule")
		cmd.SetOut(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		return cmd.Execute()
	}
	require.NoError(t, run("-o", "json"))
	var got Info
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, Read(), got)
	require.NoError(t, run())
	assert.Contains(t, out.String(), "overrule dev\n")
	require.EqualError(t, run("--output=tree"), `invalid argument "tree" for "-o, --output" flag: must be one of text, json`)
	assert.Empty(t, out.String())
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		err := Info{}.write(full{}, "overrule", format)
		require.ErrorIs(t, err, errFull, format)
		assert.ErrorContains(t, err, "write version", format)
	}
}
