package printers

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeViolations(w *textWriter, l *api.ViolationList) {
	if w.tree {
		w.nodes(w.violationNodes(l))
		return
	}
	var rows [][]cell
	for _, v := range l.Items {
		rows = append(rows, []cell{
			{string(v.Action), actionStyle(v.Action)}, plainCell(string(v.Code)), plainCell(v.PolicyKind.Kind), plainCell(api.PathText(v.Path)),
			{v.Rule, cyan}, {v.Message, dim},
		})
	}
	w.table([]string{"ACTION", "REASON", "KIND", "PATH", "RULE", "MESSAGE"}, rows)
}

// violationNodes returns equal violations once, with all their paths.
func (w *textWriter) violationNodes(l *api.ViolationList) *node {
	root := &node{}
	for _, g := range GroupBy(l.Items, func(v *api.Violation) { v.Path, v.Object, v.Field = nil, api.Ref{}, "" }) {
		top := root.add(w.violationHeading(g[0]))
		for _, v := range g {
			top.add(w.paint(plain, api.PathText(v.Path)))
		}
	}
	return root
}

func (w *textWriter) violationHeading(v api.Violation) string {
	head := w.paint(actionStyle(v.Action), string(v.Action)) + " " + w.paint(bold, fmt.Sprintf("%s of %s", v.Code, v.PolicyKind.Kind))
	if v.Rule != "" {
		head += " " + w.paint(cyan, v.Rule)
	}
	return head + w.paint(plain, ": "+v.Message)
}

func actionStyle(a api.Action) style {
	switch a {
	case api.Deny:
		return red
	case api.Warn:
		return yellow
	default:
		return dim
	}
}
