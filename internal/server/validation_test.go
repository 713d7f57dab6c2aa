package server

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// runCommand returns the error of the command. With valid flags it is that of the
// kubeconfig, which does not exist.
func runCommand(t *testing.T, args ...string) error {
	t.Helper()
	cmd := NewCommand()
	cmd.SetArgs(append(args, "--kubeconfig=/nowhere"))
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	assert.Empty(t, out.String(), "main reports the error, once")
	return err
}

// flagsIn returns the flags that each line of an error names, and compares its text with
// the golden file.
func flagsIn(t *testing.T, err error) []string {
	t.Helper()
	require.Error(t, err)
	var out []string
	for line := range strings.Lines(err.Error()) {
		messages.Golden(t, strings.TrimSuffix(line, "\n"))
		out = append(out, strings.Join(namedFlag.FindAllString(line, -1), " "))
	}
	return out
}

var namedFlag = regexp.MustCompile(`--[a-z-]+(=[A-Za-z-]+)?`)

func TestInvalidFlagsAreReported(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for flag, c := range tables.Read[map[string]struct {
		Values []string
		Others string // flags that the error names after it
	}](t, "testdata/tables/invalid-flags-are-reported.yaml") {
		for _, value := range c.Values {
			arg := flag + "=" + value
			t.Run(arg, func(t *testing.T) {
				assert.Equal(t, []string{strings.TrimSpace(flag + " " + c.Others)}, flagsIn(t, runCommand(t, arg)))
			})
		}
	}
}

func TestInvalidCombinationsAreReported(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for name, c := range tables.Read[map[string]struct {
		Args []string
		Want []string // flags that each line names
	}](t, "testdata/tables/invalid-combinations-are-reported.yaml") {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.Want, flagsIn(t, runCommand(t, c.Args...)))
		})
	}
}

func TestValidFlagsAreAccepted(t *testing.T) {
	for name, args := range tables.Read[map[string][]string](t, "testdata/tables/valid-flags-are-accepted.yaml") {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, runCommand(t, args...), "read kubeconfig: stat /nowhere: ")
		})
	}
}
