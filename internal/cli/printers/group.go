package printers

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

// GroupBy groups items that are equal but for what without removes, in the order of the first
// item of each group.
func GroupBy[T any](items []T, without func(*T)) [][]T {
	at := make(map[string]int)
	var out [][]T
	for _, item := range items {
		compared := item
		without(&compared)
		k := Compact(compared)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], item)
	}
	return out
}

// pathsOf returns the path of each item.
func pathsOf[T any](items []T, path func(T) []api.PathElement) [][]api.PathElement {
	out := make([][]api.PathElement, len(items))
	for i, item := range items {
		out[i] = path(item)
	}
	return out
}

// maxHeadings is the number of paths that are listed in the heading of a group.
const maxHeadings = 10

// pathHeadings returns the heading of a group: a policy kind and its paths.
func pathHeadings(kind api.PolicyKind, paths [][]api.PathElement) []string {
	var out []string
	for i, path := range paths {
		word := "  and on "
		if i == 0 {
			word = kind.Kind + " on "
		}
		if i == maxHeadings {
			return append(out, paint(bold, fmt.Sprintf("  and on %d more paths", len(paths)-i)))
		}
		out = append(out, paint(bold, word+api.PathText(path)))
	}
	return out
}
