package printers

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

// alike groups items that have the same key, in the order of the first of each.
func groupBy[T any](items []T, key func(T) string) [][]T {
	at := make(map[string]int)
	var out [][]T
	for _, item := range items {
		k := key(item)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], item)
	}
	return out
}

// mostHeads is how many paths are named over what is said of all of them.
const maxHeadings = 10

// heads names a policy kind and the paths that the same is said of.
func (w *textWriter) pathHeadings(kind api.PolicyKind, paths [][]api.PathElement) []string {
	var out []string
	for i, path := range paths {
		word := "  and on "
		if i == 0 {
			word = kind.Kind + " on "
		}
		if i == maxHeadings {
			return append(out, w.paint(bold, fmt.Sprintf("  and on %d more paths", len(paths)-i)))
		}
		out = append(out, w.paint(bold, word+pathName(path)))
	}
	return out
}
