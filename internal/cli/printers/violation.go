package printers

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeViolations(w *textWriter, l *api.ViolationList) {
	if w.tree {
		w.nodes(violationNodes(l))
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
func violationNodes(l *api.ViolationList) *node {
	root := &node{}
	for _, g := range GroupBy(l.Items, func(v *api.Violation) { v.Path, v.Object, v.Field = nil, api.Ref{}, "" }) {
		root.add(violationHeading(g[0])).addAll(Texts(g, func(v api.Violation) string { return OneLine(api.PathText(v.Path)) }))
	}
	return root
}

func violationHeading(v api.Violation) string {
	head := paint(actionStyle(v.Action), string(v.Action)) + " " + paint(bold, fmt.Sprintf("%s of %s", v.Code, v.PolicyKind.Kind))
	if v.Rule != "" {
		head += " " + paint(cyan, v.Rule)
	}
	return head + paint(plain, ": "+v.Message)
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
