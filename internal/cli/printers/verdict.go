package printers

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

func verdictTable(w *textWriter, l *api.VerdictList) {
	for _, v := range l.Items {
		w.line(w.verdictLine(v))
		for _, text := range w.findingLines(v) {
			w.line("  ", text)
		}
	}
}

func verdictTree(w *textWriter, l *api.VerdictList) {
	root := &node{}
	for _, v := range l.Items {
		top := root.add(w.verdictLine(v))
		for _, text := range w.findingLines(v) {
			top.add(text)
		}
	}
	w.tree(root)
}

// verdictLine returns a verdict on one line, without its findings.
func (w *textWriter) verdictLine(v api.Verdict) string {
	result := w.paint(green, "allowed")
	if !v.Allowed {
		result = w.paint(red, "denied")
	}
	reach := "changes no effective policy"
	switch {
	case v.DryRun:
		reach = "in a dry run of the API server"
	case v.Changes.Paths > 0:
		reach = fmt.Sprintf("changes the effective policy of %s in %s", plural(v.Changes.Paths, "path"), plural(v.Changes.Namespaces, "namespace"))
	}
	return fmt.Sprintf("%s %s: %s; %s", v.Operation, w.paint(bold, v.Object.String()), result, reach)
}

func (w *textWriter) findingLines(v api.Verdict) []string {
	var out []string
	for _, r := range visibleReasons(v.Reasons) {
		word := w.paint(red, "denied ")
		if v.Allowed {
			word = w.paint(yellow, "would be denied ")
		}
		out = append(out, word+w.reasonText(r))
	}
	for _, r := range visibleReasons(v.Warnings) {
		out = append(out, w.paint(yellow, "warning ")+w.reasonText(r))
	}
	return out
}

// visibleReasons omits the findings about single rules that a finding about the
// whole policy covers.
func visibleReasons(reasons []api.Reason) []api.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r api.Reason) bool { return r.Whole && r.Rule != "" })
}

func (w *textWriter) reasonText(r api.Reason) string {
	if r.Code == api.CodeWarning {
		return w.paint(plain, r.Message)
	}
	return w.paint(bold, string(r.Code)) + w.paint(plain, ": "+r.Message)
}
