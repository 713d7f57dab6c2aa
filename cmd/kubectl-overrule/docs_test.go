package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const limitsPage = "../../docs/ratelimitpolicy.md"

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// What the page on limits shows is what one sees who types it in the folder of its
// examples.
func TestThePageOnLimitsShowsWhatOneSees(t *testing.T) {
	data, err := os.ReadFile(limitsPage)
	require.NoError(t, err)
	page := string(data)
	blocks := console.FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		got := played(t, block[1])
		if *update {
			page = strings.Replace(page, block[1], got, 1)
			continue
		}
		assert.Equal(t, block[1], got)
	}
	if *update {
		require.NoError(t, os.WriteFile(limitsPage, []byte(page), 0o600))
	}
}

// played returns a block with what its commands write.
func played(t *testing.T, block string) string {
	t.Helper()
	t.Chdir("../../examples/ratelimitpolicy")
	defer t.Chdir("../../cmd/kubectl-overrule") // the next one starts from here
	var out strings.Builder
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			out.WriteString(line + written(t, command))
		}
	}
	return out.String()
}

// written returns what a command writes: of ours, or of sed and then of ours.
func written(t *testing.T, command string) string {
	t.Helper()
	edit, ours, piped := strings.Cut(command, " | ")
	stdin := ""
	if piped {
		words := strings.Fields(edit)
		require.Equal(t, "sed", words[0], command)
		edited, err := exec.CommandContext(t.Context(), words[0], words[1:]...).Output()
		require.NoError(t, err, command)
		stdin = string(edited)
	} else {
		ours = command
	}
	args, ok := strings.CutPrefix(ours, "kubectl overrule ")
	require.True(t, ok, command)
	got := run(t, stdin, strings.Fields(args)...)
	require.NotEqual(t, exitUnusable, got.code, got.stderr)
	return got.stderr + got.stdout
}
