package report

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
)

const (
	// Marker is the first line of the Markdown. A pipeline finds its own comment by it,
	// to update it.
	Marker = "<!-- overrule -->"
	// CommentLimit is the size of a comment on GitHub, in bytes.
	CommentLimit = 65536
	// SummaryLimit is the size of the job summary of a step on GitHub, in bytes.
	SummaryLimit = 1 << 20

	// cutNote is the space for the note about what is cut.
	cutNote = 300
	// diagramLimit is the length of a diagram that Mermaid draws on GitHub.
	diagramLimit = 50000
	// messageLimit and nameLimit are the lengths of texts in the table, in characters.
	messageLimit = 2000
	nameLimit    = 600
	// effectLimit is the length of what paths lose and get, in the summary line.
	effectLimit = 240
)

// Summary returns the Markdown for GITHUB_STEP_SUMMARY.
func (r *Report) Summary() string { return r.Markdown(SummaryLimit) }

// Markdown returns the report as Markdown for a pull request: Marker, a summary line, a
// table of the findings, the diagram, and the rules before and after for each path. It has
// at most limit bytes: what does not fit is left out, from the end of each part, and
// counted in a note. The summary line is always complete, which takes up to 1 KB.
func (r *Report) Markdown(limit int) string {
	rows := r.rows()
	denied := r.denied(rows)
	out := Marker + "\n" + "**" + r.summaryLine(denied) + "**\n" + quote(r.Notes, limit/4)
	remarks := quote(r.Remarks, limit/8)
	if len(rows) == 0 && len(r.Changes) == 0 && denied == 0 {
		return out + "\n" + r.evaluated() + "\n" + remarks
	}
	space := limit - len(out) - len(remarks) - cutNote
	table, findings := r.table(rows, space)
	space -= len(table)
	diagram := ""
	if r.Diagram != "" && len(r.Diagram) <= diagramLimit {
		diagram = details("Diagram of the changed paths", fence("mermaid", r.Diagram))
	}
	cutDiagram := diagram == "" && r.Diagram != "" || len(diagram) > space/2
	if cutDiagram {
		diagram = ""
	}
	space -= len(diagram)
	asIf := ""
	if denied > 0 && len(r.Changes) > 0 {
		asIf = "\n" + asIfAllowed + "\n"
	}
	changes, paths := r.changes(space - len(asIf))
	note := cutText(findings, paths, cutDiagram)
	if len(out)+len(remarks)+len(note) > limit {
		note = ""
	}
	return out + table + asIf + diagram + changes + remarks + note
}

// fit joins the first of n texts, as far as they have at most limit bytes together, and returns
// how many that are.
func fit(limit, n int, text func(int) string) (string, int) {
	var out strings.Builder
	for i := range n {
		next := text(i)
		if out.Len()+len(next) > limit {
			return out.String(), i
		}
		out.WriteString(next)
	}
	return out.String(), n
}

// impactBelow stands for the number of paths that a single object of a change affects.
const impactBelow = "effective policies change, see the paths below"

// asIfAllowed says what is shown of a denied change.
const asIfAllowed = "The effective policies below are those after the change, as if it were allowed."

// quote returns notes as a quote of at most limit bytes.
func quote(notes []string, limit int) string {
	out, _ := fit(limit, len(notes), func(i int) string {
		return "\n> " + text(printers.Cut(printers.OneLine(notes[i]), messageLimit)) + "\n"
	})
	return out
}

// summaryLine returns the counts of the report.
func (r *Report) summaryLine(denied int) string {
	if r.Command == "violations" {
		if len(r.Findings) == 0 {
			return "Overrule: no violations"
		}
		return "Overrule: " + api.Plural(len(r.Findings), "violation")
	}
	var counts []string
	if denied > 0 {
		counts = append(counts, fmt.Sprintf("%d denied", denied))
	}
	number := make(map[Severity]int)
	for _, f := range r.Findings {
		number[f.Severity]++
	}
	for _, s := range []Severity{Warning, Note} {
		if n := number[s]; n > 0 {
			counts = append(counts, api.Plural(n, s.String()))
		}
	}
	found := strings.Join(counts, ", ") + "; "
	switch {
	case len(counts) > 0:
	case r.Command == "diff": // it does not look for findings
		found = ""
	default:
		found = "no findings; "
	}
	return "Overrule: " + found + r.changesSummary()
}

// denied returns the number of denied objects. Without objects, each error is one.
func (r *Report) denied(rows []row) int {
	n := 0
	for _, o := range r.tested(rows) {
		if !o.Allowed || len(o.rows) > 0 && o.rows[0].Severity == Error {
			n++
		}
	}
	return n
}

func (r *Report) changesSummary() string {
	detail, namespaces := "", make(map[string]bool)
	var changes []api.Change
	for _, c := range r.Changes {
		changes, namespaces[c.Namespace] = append(changes, c.Change), true
	}
	if delete(namespaces, ""); len(namespaces) > 0 {
		detail = " in " + api.Plural(len(namespaces), "namespace")
	}
	var moved []string
	for _, o := range r.Objects {
		if o.Moved != "" && !slices.Contains(moved, o.Moved) {
			moved = append(moved, o.Moved)
		}
	}
	short := func(s string) string { return text(printers.Cut(printers.OneLine(s), effectLimit)) }
	return api.ChangesSummary(len(changes), detail+short(api.ChangesText(changes)), short(strings.Join(moved, ", ")))
}

// evaluated returns the text of a report without findings and changes.
func (r *Report) evaluated() string {
	switch n := len(r.Objects); {
	case r.Command == "diff" && n == 1:
		return "1 changed object was compared."
	case r.Command == "diff" && n > 0:
		return fmt.Sprintf("%d changed objects were compared.", n)
	case r.Command == "violations":
		return "No effective policy violates a constraint or the schema of its kind."
	case n == 0:
		return "No object in the change affects effective policies."
	case n == 1:
		return "1 object was evaluated: it is allowed."
	default:
		return fmt.Sprintf("%d objects were evaluated: all are allowed.", n)
	}
}

// table returns the findings as a table of at most limit bytes, and the number of those
// that do not fit.
func (r *Report) table(rows []row, limit int) (string, int) {
	const head = "\n| Severity | Reason | Object | Position | Message |\n|---|---|---|---|---|\n"
	out, n := fit(limit-len(head), len(rows), func(i int) string { return r.tableRow(rows[i]) })
	if n == 0 {
		return "", len(rows)
	}
	return head + out, len(rows) - n
}

func (r *Report) tableRow(w row) string {
	severity := severities[w.Severity].markdown
	if w.Severity == Error && r.Command == "violations" {
		severity = "Error" // only a change is denied
	}
	reason := text(printers.Cut(string(w.Code), nameLimit))
	if reasonIndex(w.Code) >= 0 {
		reason = "[" + reason + "](" + helpURI(w.Code) + ")"
	}
	object := code(printers.Cut(w.Object.String(), nameLimit))
	if w.Operation != "" {
		object += " (" + text(printers.Cut(w.Operation, nameLimit)) + ")"
	}
	message := text(printers.Cut(w.Message, messageLimit))
	if w.CountsPaths && w.Severity == Warning && len(r.Changes) > 0 {
		message = impactBelow // the paths are listed with what they lose
	}
	if w.on != "" {
		message += "<br>on " + code(printers.Cut(w.on, nameLimit))
	}
	return "| " + strings.Join([]string{severity, reason, object, code(printers.Cut(w.at, nameLimit)), message}, " | ") + " |\n"
}

// details returns content that is shown on request.
func details(summary, content string) string {
	return "\n<details>\n<summary>" + summary + "</summary>\n\n" + content + "\n</details>\n"
}

// cutText returns the note about what is left out, "" if nothing is.
func cutText(findings, paths int, diagram bool) string {
	var parts []string
	if findings > 0 {
		parts = append(parts, api.Plural(findings, "finding"))
	}
	if diagram {
		parts = append(parts, "the diagram")
	}
	if paths > 0 {
		parts = append(parts, "the changes of "+api.Plural(paths, "path"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "\nNot shown, because the text is limited in size: " + api.JoinNames(parts) + ". The log of the job shows the rest.\n"
}
