package report

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
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

// GitLab returns the findings as GitLab's code quality report. Its severities are blocker
// for an error, minor for a warning, and info for a note. GitLab requires a path: a
// finding outside of the repository has that of its object, such as
// cluster/AuthPolicy/infra/gw-auth.
func (r *Report) GitLab() ([]byte, error) {
	findings := r.sorted()
	prints, err := fingerprints(findings)
	if err != nil {
		return nil, err
	}
	out := make([]codeQuality, len(findings))
	for i, f := range findings {
		out[i] = codeQuality{Description: description(f), CheckName: string(f.Code), Fingerprint: prints[i], Severity: severities[f.Severity].gitlab}
		at := &out[i].Location
		at.Path, at.Lines.Begin = gitlabPath(f)
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("code quality report: %w", err)
	}
	return append(data, '\n'), nil
}

// description returns the code, the object and the message; the position, too, if the
// location of the report is not that of the finding.
func description(f Finding) string {
	out := f.title() + ": "
	if _, ok := f.At.inRepository(); !ok && f.At.File != "" {
		out += f.At.String() + ": "
	}
	return out + f.message()
}

// gitlabPath returns the path and the line of a finding.
func gitlabPath(f Finding) (file string, line int) {
	if file, ok := f.At.inRepository(); ok {
		return file, max(f.At.Line, 1)
	}
	return path.Join("cluster", segment(f.Object.Kind), segment(f.Object.Namespace), segment(f.Object.Name)), 1
}

// segment returns a text as one segment of a path.
func segment(s string) string {
	return strings.Trim(strings.ReplaceAll(oneLine(s), "/", "_"), ".")
}
