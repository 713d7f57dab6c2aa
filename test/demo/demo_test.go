package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func runSteps(t *testing.T, paint painter, steps ...step) (string, error) {
	t.Helper()
	var out bytes.Buffer
	p := player{out: &out, paint: paint, dir: t.TempDir(), environ: []string{"PATH=" + os.Getenv("PATH"), "WHO=you"}}
	err := p.play(t.Context(), steps)
	return out.String(), err
}

func TestStoryOutput(t *testing.T) {
	out, err := runSteps(t, painter{},
		step{say: "Someone greets.", command: `echo "hello $WHO"; echo careful >&2`, stdout: []string{"hello you"}, stderr: []string{"care"}},
		step{say: "Someone fails.", command: "exit 3", code: 3})
	require.NoError(t, err)
	assert.Equal(t, `
1. Someone greets.
$ echo "hello $WHO"; echo careful >&2
careful
hello you

2. Someone fails.
$ exit 3

All 2 commands did what was expected.
`, out)
}

func TestStoryStopsAtFirstDifference(t *testing.T) {
	for name, c := range map[string]struct {
		step step
		want string
	}{
		"another exit code":     {step{command: "exit 1"}, "step 1 (exit 1): unexpected result: exit code 1, want 0"},
		"an unexpected success": {step{command: "true", code: 1}, "step 1 (true): unexpected result: exit code 0, want 1"},
		"missing on stdout":     {step{command: "echo a", stdout: []string{"b"}}, `step 1 (echo a): unexpected result: stdout does not contain "b"`},
		"missing on stderr":     {step{command: "echo a >&2", stderr: []string{"b"}}, `step 1 (echo a >&2): unexpected result: stderr does not contain "b"`},
		"an unexpected warning": {step{command: "echo a >&2"}, `step 1 (echo a >&2): unexpected result: stderr is not empty`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runSteps(t, painter{}, c.step, step{say: "never run", command: "true"})
			require.ErrorIs(t, err, ErrStory)
			assert.EqualError(t, err, c.want)
			assert.NotContains(t, out, "never run")
		})
	}
}

func TestInterruptedStoryFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	err := player{out: &out, dir: t.TempDir()}.play(ctx, []step{{command: "true"}})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestColorOnTerminalsOnly(t *testing.T) {
	unset, set := func(string) string { return "" }, func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	assert.True(t, newPainter(true, unset).on)
	assert.False(t, newPainter(true, set).on)
	assert.False(t, newPainter(false, unset).on, "a file is not a terminal")
}

func TestColorEscapes(t *testing.T) {
	out, err := runSteps(t, painter{on: true}, step{say: "Say.", command: "echo careful >&2", stderr: []string{"careful"}})
	require.NoError(t, err)
	assert.Contains(t, out, "\x1b[1;36m1. Say.\x1b[0m\n\x1b[1m$ echo careful >&2\x1b[0m\n\x1b[33mcareful\n\x1b[0m")
	assert.Empty(t, painter{on: true}.stderr(""))
}

// The files that the commands of the story name exist.
func TestStoryFilesExist(t *testing.T) {
	file := regexp.MustCompile(`examples/\S+`)
	for _, s := range story {
		for _, name := range file.FindAllString(s.command, -1) {
			_, err := os.Stat(filepath.Join("..", "..", name))
			assert.NoError(t, err)
		}
	}
}
