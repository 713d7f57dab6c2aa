package report

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	api "overrule.dev/overrule/api/v1alpha1"
)

// severities are the words for each severity: that of SARIF and of texts, GitHub's command
// for an annotation, GitLab's severity, and that of Markdown.
var severities = [...]struct{ name, github, gitlab, markdown string }{
	Error:   {"error", "error", "blocker", "Denied"},
	Warning: {"warning", "warning", "minor", "Warning"},
	Note:    {"note", "notice", "info", "Note"},
}

// String returns error, warning or note.
func (s Severity) String() string { return severities[s].name }

// sorted returns the findings by severity, the most severe first. Findings of one
// severity keep their order.
func (r *Report) sorted() []Finding {
	out := slices.Clone(r.Findings)
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return out
}

var windowsVolume = regexp.MustCompile(`^[A-Za-z]:/`)

// inRepository returns the file relative to the root of the repository, and whether it
// is in the repository.
func (l Location) inRepository() (string, bool) {
	if l.File == "" || l.File == "-" || l.absolute() {
		return "", false
	}
	file := path.Clean(l.File)
	return file, file != ".." && !strings.HasPrefix(file, "../")
}

func (l Location) absolute() bool {
	return path.IsAbs(l.File) || windowsVolume.MatchString(l.File)
}

// fileName returns the file as messages name it, "" for none.
func (l Location) fileName() string {
	if l.File == "-" {
		return "standard input"
	}
	return l.File
}

// String returns FILE:LINE:COLUMN as far as these are known; "" for no file.
func (l Location) String() string {
	out := l.fileName()
	if out == "" || l.Line < 1 {
		return out
	}
	out += ":" + strconv.Itoa(l.Line)
	if l.Column < 1 {
		return out
	}
	return out + ":" + strconv.Itoa(l.Column)
}

// title returns the code and the object.
func (f Finding) title() string {
	if o := f.Object.String(); o != "" {
		return string(f.Code) + ": " + o
	}
	return string(f.Code)
}

// line returns the finding on one line, with the position, the severity, the code and
// the object.
func (f Finding) line() string {
	out := f.Severity.String() + ": " + f.title() + ": " + f.message()
	if at := f.At.String(); at != "" {
		out += " (" + at + ")"
	}
	return oneLine(out)
}

// message returns the message with the path of a violation.
func (f Finding) message() string {
	path := api.PathText(f.Path)
	if path == "" {
		return f.Message
	}
	return f.Message + " (on " + path + ")"
}

// oneLine replaces line breaks and control characters by spaces.
func oneLine(s string) string {
	s = strings.ReplaceAll(s, "\r\n", " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// firstLine returns the text up to the first line break.
func firstLine(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return s[:i]
	}
	return s
}

// cut shortens a text to a number of characters, with an ellipsis at the end.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// counted returns "1 finding", "2 findings".
func counted(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}
