package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
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

// row is a finding as the formats show it.
type row struct {
	Finding
	title string // the code and the object
	on    string // the path of a violation
	text  string // the message, with the path of a violation
	at    string // the position, see Location.String
	file  string // relative to the root of the repository; "" for one that is not in it
	line  string // all of it on one line
	// fingerprint is an identity that other changes of the manifests keep.
	fingerprint string
}

// rows returns the findings by severity, the most severe first. Findings of one severity keep
// their order.
func (r *Report) rows() []row {
	findings := slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	out := make([]row, len(findings))
	seen := make(map[string]int, len(findings))
	for i, f := range findings {
		w := row{Finding: f, title: string(f.Code), on: api.PathText(f.Path), text: f.Message, at: f.At.String(), file: f.At.inRepository()}
		if o := f.Object.String(); o != "" {
			w.title += ": " + o
		}
		if w.on != "" {
			w.text += " (on " + w.on + ")"
		}
		w.line = f.Severity.String() + ": " + w.title + ": " + w.text
		if w.at != "" {
			w.line += " (" + w.at + ")"
		}
		w.line = printers.OneLine(w.line)
		hash := f.hash()
		seen[hash]++
		w.fingerprint = hash + ":" + strconv.Itoa(seen[hash])
		out[i] = w
	}
	return out
}

// hash returns a hash of the code, the object, the policy kind, the path, the rule and the
// other policy. Messages, lines and the indexes of a route's rules are not part of it, and the
// operation neither: the CREATE of a pull request is an UPDATE later.
func (f *Finding) hash() string {
	elements := make([]api.PathElement, len(f.Path))
	for i, e := range f.Path {
		elements[i] = withoutIndex(e)
	}
	data, err := json.Marshal([]any{f.Code, f.Object, f.PolicyKind, elements, f.Rule, f.Policy})
	if err != nil {
		data = []byte(err.Error()) // strings and numbers can always be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// withoutIndex removes what depends on the position in a list: a rule without a name is
// called after its position.
func withoutIndex(e api.PathElement) api.PathElement {
	if e.Index != nil && e.Section == "rule-"+strconv.Itoa(*e.Index+1) {
		e.Section = ""
	}
	e.Index = nil
	e.Member = listIndex.ReplaceAllString(e.Member, "")
	return e
}

var windowsVolume = regexp.MustCompile(`^[A-Za-z]:/`)

// inRepository returns the file relative to the root of the repository; "" if it is not in
// the repository.
func (l Location) inRepository() string {
	file := path.Clean(l.File)
	if l.File == "" || l.File == "-" || l.absolute() || file == ".." || strings.HasPrefix(file, "../") {
		return ""
	}
	return file
}

func (l Location) absolute() bool {
	return path.IsAbs(l.File) || windowsVolume.MatchString(l.File)
}

// String returns FILE:LINE:COLUMN as far as these are known; "" for no file.
func (l Location) String() string {
	out := l.File
	if out == "-" {
		out = "standard input"
	}
	if out == "" || l.Line < 1 {
		return out
	}
	out += ":" + strconv.Itoa(l.Line)
	if l.Column < 1 {
		return out
	}
	return out + ":" + strconv.Itoa(l.Column)
}
