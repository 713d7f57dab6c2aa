package report

import (
	"slices"

	"overrule.dev/overrule/internal/cli/printers"
)

// The names of formats that commands refer to.
const (
	GitHub   printers.Format = "github"
	Markdown printers.Format = "markdown"
)

// Format is a format of CI systems.
type Format struct {
	// Name is its name as that of a flag.
	Name printers.Format
	// ShowsChanges is set if it shows Changes: GitHub's job summary is Markdown.
	ShowsChanges bool
	// Text returns a report in the format.
	Text func(*Report) ([]byte, error)
}

// Formats are all formats of CI systems, in the order in which a user reads their names. The
// flags --output and --output-file take what is added here.
var Formats = []Format{
	{Name: GitHub, ShowsChanges: true, Text: githubText},
	{Name: "sarif", Text: sarifText},
	{Name: "junit", Text: junitText},
	{Name: "gitlab", Text: gitlabText},
	{Name: Markdown, ShowsChanges: true, Text: func(r *Report) ([]byte, error) { return []byte(r.Markdown(CommentLimit)), nil }},
}

// FormatOf returns the format of a name, nil if there is none.
func FormatOf(name printers.Format) *Format {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &Formats[i]
}
