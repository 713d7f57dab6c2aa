package printers

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeVerdicts(w *textWriter, l *api.VerdictList) {
	root := &node{}
	for _, v := range l.Items {
		root.add(verdictLine(v)).addAll(findingLines(v))
	}
	if w.tree {
		w.nodes(root)
	} else {
		w.indentChildren(root, "")
	}
}

// verdictLine returns a verdict on one line, without its findings.
func verdictLine(v api.Verdict) string {
	result := paint(green, "allowed")
	if !v.Allowed {
		result = paint(red, "denied")
	}
	return fmt.Sprintf("%s %s: %s; %s", v.Operation, paint(bold, v.Object.String()), result, reachText(v))
}

// reachText says what a change does, what paths lose first.
func reachText(v api.Verdict) string {
	c, moved := v.Changes, v.MovedText()
	if c.Paths == 0 && moved != "" {
		return moved
	}
	if moved != "" {
		moved = "; " + moved
	}
	unreached := api.UnreachedText(c.Unreached, c.Paths)
	switch {
	case v.DryRun:
		return "in a dry run of the API server"
	case c.Paths == 0:
		return "changes no effective policy"
	case len(v.Lost) == 0:
		return fmt.Sprintf("changes the effective policy of %s in %s", api.Plural(c.Paths, "path"), api.Plural(c.Namespaces, "namespace")) + gainedText(v.Gained) + unreached + moved
	}
	const most = 3
	var parts []string
	for _, l := range v.Lost[:min(len(v.Lost), most)] {
		parts = append(parts, fmt.Sprintf("%s %s %s", api.Plural(l.Paths, "path"), l.Verb(), l.Rules))
	}
	text := strings.Join(parts, ", ") + api.More(", and ", len(v.Lost)-len(parts), "")
	if !slices.ContainsFunc(v.Lost, func(l api.LostRules) bool { return l.Paths >= c.Paths }) {
		text += fmt.Sprintf("; the effective policy of %s changes", api.Plural(c.Paths, "path")) + unreached
	}
	return text + moved
}

// gainedText says what a route gets which is created.
func gainedText(gained []api.GainedRules) string {
	if len(gained) == 0 {
		return ""
	}
	return "; gets " + api.GainedText(gained)
}

func findingLines(v api.Verdict) []string {
	var out []string
	for _, r := range visibleReasons(v.Reasons) {
		word := paint(red, "denied ")
		if v.Allowed {
			word = paint(yellow, "would be denied ")
		}
		out = append(out, word+reasonText(r))
	}
	for _, r := range visibleReasons(v.Warnings) {
		if r.Repeats { // the line of the verdict
			continue
		}
		out = append(out, paint(yellow, "warning ")+reasonText(r))
	}
	return out
}

// visibleReasons omits the findings about single rules that a finding about the
// whole policy covers.
func visibleReasons(reasons []api.Reason) []api.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r api.Reason) bool { return r.Whole && r.Rule != "" })
}

func reasonText(r api.Reason) string {
	if r.Code == api.CodeWarning {
		return paint(plain, r.Message)
	}
	return paint(bold, string(r.Code)) + paint(plain, ": "+r.Message)
}
