package commands

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
)

const limitsPage = "../../../docs/ratelimitpolicy.md"

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// The console blocks of the page on limits are the output of their commands in the
// directory of the examples.
func TestLimitsPageShowsOutput(t *testing.T) {
	data, err := os.ReadFile(limitsPage)
	require.NoError(t, err)
	page := string(data)
	blocks := console.FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		got := runConsole(t, block[1])
		if messages.Update() {
			page = strings.Replace(page, block[1], got, 1)
			continue
		}
		assert.Equal(t, block[1], got)
	}
	if messages.Update() {
		require.NoError(t, os.WriteFile(limitsPage, []byte(page), 0o600))
	}
}

// quote matches a message that the page quotes about these examples.
var quote = regexp.MustCompile(`(?m)^> (?:\w+: )?(.*toystore/toystore.*)$`)

// Each message that the page on reasons quotes is printed for one of these writes.
func TestReasonsPageQuotesMessages(t *testing.T) {
	var said []string
	t.Chdir("../../../examples/ratelimitpolicy")
	for _, args := range []string{
		"sed s,identity,identiy, dolls.yaml | kubectl overrule check -f -",
		"sed s,/toys,/toy, 2-rules.yaml | kubectl overrule check -f -",
		"sed s,games.toystore,games.shop, 7-hostnames.yaml | kubectl overrule check -f -",
		"kubectl overrule check -f 4-match-found.yaml",
		"kubectl overrule check -f 6-shadowing.yaml",
		"kubectl overrule check -f LIMITS/part.yaml",
		"kubectl overrule check -f LIMITS/static.yaml --against 2-rules.yaml",
		"sed s,/toys,/dolls, 3-route.yaml | kubectl overrule check -f - --against 2-rules.yaml",
		"sed -e s,Exact,PathPrefix, -e s,/special,, 3-route.yaml | kubectl overrule check -f - --against 2-rules.yaml",
		"sed s,toys\"$,\", 3-route.yaml | kubectl overrule check -f - --against LIMITS/override.yaml",
		"kubectl overrule check -f LIMITS/lower.yaml --against LIMITS/override.yaml",
		"kubectl overrule check -f LIMITS/override.yaml --against LIMITS/lower.yaml",
	} {
		args = strings.ReplaceAll(args, "LIMITS", "../../internal/cli/commands/testdata/limits") + " --against network.yaml"
		for line := range strings.Lines(runPipeline(t, args)) {
			_, message, _ := strings.Cut(strings.TrimSpace(line), ": ")
			said = append(said, strings.TrimSuffix(message, approvalAdvice)) // the server does not say that
		}
	}
	data, err := os.ReadFile("../../docs/reasons.md")
	require.NoError(t, err)
	quotes := quote.FindAllStringSubmatch(string(data), -1)
	assert.NotEmpty(t, quotes)
	for _, q := range quotes {
		assert.Contains(t, said, q[1])
	}
}

// runConsole returns a console block with the current output of its commands.
func runConsole(t *testing.T, block string) string {
	t.Helper()
	t.Chdir("../../../examples/ratelimitpolicy")
	defer t.Chdir("../../internal/cli/commands") // the next one starts from here
	var out strings.Builder
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			out.WriteString(line + runPipeline(t, command))
		}
	}
	return out.String()
}

// runPipeline returns the output of a plugin command, or of sed piped into one.
func runPipeline(t *testing.T, command string) string {
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
	require.NotEqual(t, exitError, got.code, got.stderr)
	return got.stderr + got.stdout
}
