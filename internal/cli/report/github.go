package report

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/sethvargo/go-githubactions"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
)

// Limits of GitHub's runner: it drops further annotations of the same type in a step, and
// the end of longer messages. A longer title is an error of GitHub's API.
const (
	githubAnnotations = 10
	githubMessage     = 4096
	githubTitle       = 255
)

// githubText returns the findings as workflow commands, which GitHub's runner shows as
// annotations of files and lines. Of each type, it shows the first ten of a step: if there are
// more, the tenth annotation gives their number, and they follow as plain lines in a group of
// the log.
func githubText(r *Report) ([]byte, error) {
	var lines, rest []string
	for all := r.rows(); len(all) > 0; {
		n := 1
		for n < len(all) && all[n].Severity == all[0].Severity {
			n++
		}
		shown := n
		if n > githubAnnotations {
			shown = githubAnnotations - 1
		}
		for _, w := range all[:shown] {
			lines = append(lines, annotation(w))
		}
		if shown < n {
			lines = append(lines, moreAnnotations(all[0].Severity, n-shown))
		}
		for _, w := range all[shown:n] {
			rest = append(rest, logLine(w.line))
		}
		all = all[n:]
	}
	if len(rest) > 0 {
		lines = append(lines, command("group", nil, api.Plural(len(rest), "more finding")))
		lines = append(append(lines, rest...), command("endgroup", nil, ""))
	}
	var out bytes.Buffer
	for _, l := range lines {
		out.WriteString(l + "\n")
	}
	return out.Bytes(), nil
}

func annotation(w row) string {
	// The runner trims the last property, which is the title.
	properties := githubactions.CommandProperties{"title": strings.TrimSpace(printers.Cut(printers.OneLine(w.title), githubTitle))}
	message := cmp.Or(w.text, string(w.Code))
	if w.file != "" {
		properties["file"] = w.file
		addPosition(properties, w.At)
	} else if w.at != "" {
		message = w.at + ": " + message
	}
	return command(severities[w.Severity].github, properties, printers.Cut(message, githubMessage))
}

func addPosition(p githubactions.CommandProperties, at Location) {
	if at.Line < 1 {
		return
	}
	p["line"], p["endLine"] = strconv.Itoa(at.Line), strconv.Itoa(at.Line)
	if at.Column > 0 {
		p["col"] = strconv.Itoa(at.Column)
	}
	if at.Column > 0 && at.EndColumn > at.Column {
		p["endColumn"] = strconv.Itoa(at.EndColumn)
	}
}

// moreAnnotations returns the annotation for findings that have none of their own.
func moreAnnotations(s Severity, n int) string {
	more := api.Plural(n, "more "+s.String())
	return command(severities[s].github, githubactions.CommandProperties{"title": more},
		more+" without an annotation: see the job summary, or the group at the end of this step's log")
}

func command(name string, properties githubactions.CommandProperties, message string) string {
	c := githubactions.Command{Name: name, Properties: properties, Message: message}
	return c.String()
}

// logLine returns a line that the runner does not read as a command: it starts with a
// severity, and does not contain "##[".
func logLine(line string) string {
	for strings.Contains(line, "##[") {
		line = strings.ReplaceAll(line, "##[", "## [")
	}
	return line
}
