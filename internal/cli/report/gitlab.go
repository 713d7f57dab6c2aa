package report

import (
	"encoding/json"
	"path"
	"strings"

	"overrule.dev/overrule/internal/cli/printers"
)

// codeQuality is an entry of GitLab's code quality report.
type codeQuality struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

// gitlabText returns the findings as GitLab's code quality report. Its severities are blocker
// for an error, minor for a warning, and info for a note. GitLab requires a path: a finding
// outside of the repository has that of its object, such as cluster/AuthPolicy/infra/gw-auth.
func gitlabText(r *Report) ([]byte, error) {
	out := make([]codeQuality, 0, len(r.Findings))
	for _, w := range r.rows() {
		q := codeQuality{Description: w.title + ": " + w.text, CheckName: string(w.Code), Fingerprint: w.fingerprint, Severity: severities[w.Severity].gitlab}
		q.Location.Path, q.Location.Lines.Begin = w.file, max(w.At.Line, 1)
		if w.file == "" {
			q.Location.Path = path.Join("cluster", segment(w.Object.Kind), segment(w.Object.Namespace), segment(w.Object.Name))
			q.Location.Lines.Begin = 1
			if w.at != "" {
				q.Description = w.title + ": " + w.at + ": " + w.text
			}
		}
		out = append(out, q)
	}
	data, err := json.MarshalIndent(out, "", "  ")
	return append(data, '\n'), err
}

// segment returns a text as one segment of a path.
func segment(s string) string {
	return strings.Trim(strings.ReplaceAll(printers.OneLine(s), "/", "_"), ".")
}
