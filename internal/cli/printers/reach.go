package printers

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeReaches(w *textWriter, l *api.ReachList) {
	root := &node{}
	for _, r := range l.Items {
		top := root.add(reachLine(r))
		for _, part := range reachParts(r) {
			if !w.tree {
				top.add(paint(dim, fmt.Sprintf("%-10s", part.name)) + paint(plain, strings.Join(part.values, ", ")))
				continue
			}
			top.add(paint(dim, part.name)).addAll(Texts(part.values, OneLine))
		}
	}
	w.nodes(root)
}

// reachLine returns the summary of a policy on one line.
func reachLine(r api.Reach) string {
	what := paint(bold, r.Policy.String())
	if r.Rule != "" {
		what = paint(cyan, r.Rule) + paint(plain, " of ") + what
	}
	switch {
	case r.Paths.Total == 0:
		return what + ": " + paint(yellow, "not on any path")
	case r.Paths.Holding == 0:
		return what + ": " + paint(yellow, "has no effect") + paint(plain, fmt.Sprintf(" (0 of %s)", api.Plural(r.Paths.Total, "path")))
	default:
		return what + ": " + paint(green, "in effect") + paint(plain, fmt.Sprintf(" on %d of %s", r.Paths.Holding, api.Plural(r.Paths.Total, "path")))
	}
}

// namedList is a list with a name.
type namedList struct {
	name   string
	values []string
}

func reachParts(r api.Reach) []namedList {
	listeners := Texts(r.Listeners, func(l api.PathElement) string {
		return api.Ref{Namespace: l.Namespace, Name: l.Name}.Key() + "#" + l.Section
	})
	return withoutEmpty([]namedList{
		{"rules", r.Rules}, {"gateways", Texts(r.Gateways, api.Ref.Key)}, {"listeners", listeners}, {"services", Texts(r.Services, api.Ref.Key)},
		{"routes", Texts(r.Routes, api.Ref.String)}, {"backends", Texts(r.Backends, api.Ref.String)},
	})
}

func withoutEmpty(lists []namedList) []namedList {
	return slices.DeleteFunc(lists, func(l namedList) bool { return len(l.values) == 0 })
}

// Texts returns the text of each item.
func Texts[T any, S ~string](items []T, text func(T) S) []S {
	out := make([]S, len(items))
	for i, item := range items {
		out[i] = text(item)
	}
	return out
}
