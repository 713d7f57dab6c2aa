package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/test/tables"
)

// workflowCommand is a command as GitHub's runner reads it.
type workflowCommand struct {
	name       string
	properties map[string]string
	message    string
}

var (
	runnerCommands = []string{"error", "warning", "notice", "group", "endgroup", "debug", "add-mask", "add-matcher", "stop-commands", "echo", "set-env", "set-output", "add-path", "save-state"}
	unescapeData   = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%")
	unescapeValue  = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")
)

// workflowCommands returns the commands of a log, and its other lines, by the rules of the
// runner (ActionCommand.TryParseV2 and TryParse of actions/runner).
func workflowCommands(log string) (commands []workflowCommand, plain []string) {
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimSuffix(log, "\n")), "\n") {
		if c, ok := workflowCommandOf(line); ok {
			commands = append(commands, c)
		} else {
			plain = append(plain, line)
		}
	}
	return commands, plain
}

func workflowCommandOf(line string) (workflowCommand, bool) {
	info, rest, separator := "", "", ","
	if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "::") && strings.Contains(trimmed[2:], "::") {
		info, rest, _ = strings.Cut(strings.TrimLeft(line, " \t")[2:], "::")
	} else if _, after, found := strings.Cut(line, "##["); found {
		info, rest, _ = strings.Cut(after, "]")
		separator = ";"
	}
	name, list, _ := strings.Cut(info, " ")
	for _, known := range runnerCommands {
		if !strings.EqualFold(name, known) {
			continue
		}
		c := workflowCommand{name: name, properties: map[string]string{}, message: unescapeData.Replace(rest)}
		for pair := range strings.SplitSeq(strings.TrimSpace(list), separator) {
			if key, value, ok := strings.Cut(pair, "="); ok {
				c.properties[key] = unescapeValue.Replace(value)
			}
		}
		return c, true
	}
	return workflowCommand{}, false
}

func annotations(t *testing.T, findings ...Finding) ([]workflowCommand, []string) {
	t.Helper()
	out, err := githubText(&Report{Command: "check", Findings: findings})
	require.NoError(t, err)
	if len(out) == 0 {
		return nil, nil
	}
	return workflowCommands(string(out))
}

func TestGitHubAnnotations(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		At            Location
		Message       string
		Command, Text string
		Properties    map[string]string
	}](t, "testdata/tables/github-annotations.yaml") {
		t.Run(name, func(t *testing.T) {
			severity := Severity(slices.Index([]string{"error", "warning", "notice"}, c.Command))
			got, plain := annotations(t, Finding{Severity: severity, Code: api.ReasonOverrideEvaded, Object: toystore, Message: c.Message, At: c.At})
			c.Properties["title"] = "OverrideEvaded: HTTPRoute app/toystore"
			assert.Equal(t, []workflowCommand{{c.Command, c.Properties, c.Text}}, got)
			assert.Empty(t, plain)
		})
	}
	got, _ := annotations(t, Finding{Severity: Warning, Code: api.ReasonRequirementUnmet, Object: gwAuth, Path: routePath("app", "toystore", "toys", 0), Message: "text"}, Finding{Code: "TooMuch"})
	assert.Equal(t, []workflowCommand{
		{"error", map[string]string{"title": "TooMuch"}, "TooMuch"},
		{"warning", map[string]string{"title": "RequirementUnmet: AuthPolicy infra/gw-auth"}, "text (on Gateway infra/edge#http > HTTPRoute app/toystore#toys)"},
	}, got, "a violation names its path, a finding without a message its code")
}

func TestGitHubCutsLongTexts(t *testing.T) {
	got, _ := annotations(t, Finding{Code: "Invalid", Object: ref("", "AuthPolicy", "app", strings.Repeat("ä", 300)), Message: strings.Repeat("ä", 70000)})
	require.Len(t, got, 1)
	assert.Equal(t, 255, utf8.RuneCountInString(got[0].properties["title"]))
	assert.Equal(t, strings.Repeat("ä", 4095)+"…", got[0].message)
}

func TestGitHubWritesTenAnnotationsPerType(t *testing.T) {
	var findings []Finding
	for i := range 11 {
		for _, s := range []Severity{Note, Error} {
			findings = append(findings, Finding{Severity: s, Code: "Invalid", Object: toystore, Message: fmt.Sprintf("::error::m%d\n##[error]x ##[##[group]", i), At: Location{File: "a.yaml", Line: i + 1}})
		}
	}
	for i := range 10 {
		findings = append(findings, Finding{Severity: Warning, Code: "NoPath", Message: fmt.Sprintf("w%d", i)})
	}
	got, plain := annotations(t, findings...)
	require.Len(t, got, 32)
	for i, c := range got[:10] {
		assert.Equal(t, "error", c.name)
		if i < 9 {
			assert.Equal(t, fmt.Sprintf("::error::m%d\n##[error]x ##[##[group]", i), c.message)
		}
	}
	assert.Equal(t, "2 more errors without an annotation: see the job summary, or the group at the end of this step's log", got[9].message)
	for i, c := range got[10:20] {
		assert.Equal(t, workflowCommand{"warning", map[string]string{"title": "NoPath"}, fmt.Sprintf("w%d", i)}, c)
	}
	assert.Equal(t, map[string]string{"title": "2 more notes"}, got[29].properties)
	assert.Equal(t, workflowCommand{"group", map[string]string{}, "4 more findings"}, got[30])
	assert.Equal(t, workflowCommand{"endgroup", map[string]string{}, ""}, got[31])
	assert.Equal(t, []string{
		"error: Invalid: HTTPRoute app/toystore: ::error::m9 ## [error]x ## [## [group] (a.yaml:10)",
		"error: Invalid: HTTPRoute app/toystore: ::error::m10 ## [error]x ## [## [group] (a.yaml:11)",
		"note: Invalid: HTTPRoute app/toystore: ::error::m9 ## [error]x ## [## [group] (a.yaml:10)",
		"note: Invalid: HTTPRoute app/toystore: ::error::m10 ## [error]x ## [## [group] (a.yaml:11)",
	}, plain)
}

func TestGitHubWithoutFindingsWritesNothing(t *testing.T) {
	out, err := githubText(&Report{Command: "check", Objects: full().Objects})
	require.NoError(t, err)
	assert.Empty(t, out)
}

// Any text comes out of the runner as it is, and no text is a command of its own.
func FuzzGitHub(f *testing.F) {
	f.Add("::error::a\r\n##[warning]b", "a b,c:d%0A.yaml", "x\n::stop-commands::y")
	f.Add("%250A", "../x", "##[[")
	f.Fuzz(func(t *testing.T, message, file, name string) {
		findings := make([]Finding, 12)
		for i := range findings {
			findings[i] = Finding{Code: "Invalid", Object: api.Ref{Kind: "AuthPolicy", Name: name}, Message: message, At: Location{File: file, Line: 1}}
		}
		got, plain := annotations(t, findings...)
		require.Len(t, got, 12, "10 annotations, group and endgroup")
		require.Len(t, plain, 3)
		want := message
		path := findings[0].At.inRepository()
		if path == "" && file != "" {
			want = findings[0].At.String() + ": " + message
		} else if message == "" {
			want = "Invalid"
		}
		assert.Equal(t, printers.Cut(want, githubMessage), got[0].message)
		if path != "" {
			assert.Equal(t, path, got[0].properties["file"])
		} else {
			assert.NotContains(t, got[0].properties, "file")
		}
		for _, c := range got[:10] {
			assert.Equal(t, "error", c.name)
		}
	})
}
