package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sethvargo/go-githubactions"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Limits of GitHub's runner: it drops further annotations of the same type in a step, and
// the end of longer messages. A longer title is an error of GitHub's API.
const (
	githubAnnotations = 10
	githubMessage     = 4096
	githubTitle       = 255
)

// GitHub writes the findings as workflow commands, which GitHub's runner shows as
// annotations of files and lines. Of each type, it shows the first ten of a step: if there
// are more, the tenth annotation gives their number, and they follow as plain lines in a
// group of the log.
func (r *Report) GitHub(w io.Writer) error {
	var out strings.Builder
	var rest []Finding
	for _, all := range r.bySeverity() {
		shown := all
		if len(all) > githubAnnotations {
			shown = all[:githubAnnotations-1]
			rest = append(rest, all[len(shown):]...)
		}
		for _, f := range shown {
			out.WriteString(annotation(f) + "\n")
		}
		if len(shown) < len(all) {
			out.WriteString(moreAnnotations(all[len(shown):]) + "\n")
		}
	}
	if len(rest) > 0 {
		out.WriteString(command("group", nil, api.Plural(len(rest), "more finding")) + "\n")
		for _, f := range rest {
			out.WriteString(logLine(f) + "\n")
		}
		out.WriteString(command("endgroup", nil, "") + "\n")
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write annotations: %w", err)
	}
	return nil
}

// bySeverity returns the findings of each severity, the most severe first.
func (r *Report) bySeverity() [3][]Finding {
	var out [3][]Finding
	for _, f := range r.Findings {
		out[f.Severity] = append(out[f.Severity], f)
	}
	return out
}

func annotation(f Finding) string {
	// The runner trims the last property, which is the title.
	properties := githubactions.CommandProperties{"title": strings.TrimSpace(cut(oneLine(f.title()), githubTitle))}
	message := cmp.Or(f.message(), string(f.Code))
	if file, ok := f.At.inRepository(); ok {
		properties["file"] = file
		addPosition(properties, f.At)
	} else if at := f.At.String(); at != "" {
		message = at + ": " + message
	}
	return command(severities[f.Severity].github, properties, cut(message, githubMessage))
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

// moreAnnotations returns the annotation for findings that have none of their own. All
// are of one severity.
func moreAnnotations(findings []Finding) string {
	s := findings[0].Severity
	n := api.Plural(len(findings), "more "+s.String())
	return command(severities[s].github, githubactions.CommandProperties{"title": n},
		n+" without an annotation: see the job summary, or the group at the end of this step's log")
}

func command(name string, properties githubactions.CommandProperties, message string) string {
	c := githubactions.Command{Name: name, Properties: properties, Message: message}
	return c.String()
}

// logLine returns a finding as a line that the runner does not read as a command: it does
// not start with "::", and does not contain "##[".
func logLine(f Finding) string {
	line := f.line()
	for strings.Contains(line, "##[") {
		line = strings.ReplaceAll(line, "##[", "## [")
	}
	return line
}
