package printers

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func reachTable(w *textWriter, l *api.ReachList) {
	for _, r := range l.Items {
		w.blankLine()
		w.line(w.reachLine(r))
		for _, part := range reachParts(r) {
			w.line("  ", w.paint(dim, fmt.Sprintf("%-10s", part.name)), w.paint(plain, strings.Join(part.values, ", ")))
		}
	}
}

func reachTree(w *textWriter, l *api.ReachList) {
	root := &node{}
	for _, r := range l.Items {
		top := root.add(w.reachLine(r))
		for _, part := range reachParts(r) {
			at := top.add(w.paint(dim, part.name))
			for _, v := range part.values {
				at.add(w.paint(plain, v))
			}
		}
	}
	w.tree(root)
}

// reachLine returns the summary of a policy on one line.
func (w *textWriter) reachLine(r api.Reach) string {
	what := w.paint(bold, r.Policy.String())
	if r.Rule != "" {
		what = w.paint(cyan, r.Rule) + w.paint(plain, " of ") + what
	}
	switch {
	case r.Paths.Total == 0:
		return what + ": " + w.paint(yellow, "not on any path")
	case r.Paths.Holding == 0:
		return what + ": " + w.paint(yellow, "has no effect") + w.paint(plain, fmt.Sprintf(" (0 of %s)", api.Plural(r.Paths.Total, "path")))
	default:
		return what + ": " + w.paint(green, "in effect") + w.paint(plain, fmt.Sprintf(" on %d of %s", r.Paths.Holding, api.Plural(r.Paths.Total, "path")))
	}
}

// namedList is a list with a name.
type namedList struct {
	name   string
	values []string
}

func reachParts(r api.Reach) []namedList {
	listeners := make([]string, len(r.Listeners))
	for i, l := range r.Listeners {
		listeners[i] = api.Ref{Namespace: l.Namespace, Name: l.Name}.Key() + "#" + l.Section
	}
	var out []namedList
	for _, p := range []namedList{
		{"rules", r.Rules}, {"gateways", keys(r.Gateways)}, {"listeners", listeners},
		{"services", keys(r.Services)}, {"routes", kindKeys(r.Routes)}, {"backends", kindKeys(r.Backends)},
	} {
		if len(p.values) > 0 {
			out = append(out, p)
		}
	}
	return out
}

func keys(refs []api.Ref) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = r.Key()
	}
	return out
}

func kindKeys(refs []api.Ref) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = r.String()
	}
	return out
}
