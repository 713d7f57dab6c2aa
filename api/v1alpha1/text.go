package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
)

// NamesText names the first of some rules: "a, b, c and 4 more rules".
func NamesText(names []string) string {
	const most = 4
	if len(names) > most {
		names = append(slices.Clone(names[:most-1]), fmt.Sprintf("%d more rules", len(names)-most+1))
	}
	return JoinNames(names)
}

// JoinNames joins names as in "a, b and c".
func JoinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Plural returns a number of things, as in "1 path" and "2 paths".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// More counts what a text does not name, behind a conjunction: " and 2 more", or with a noun
// " and 2 more paths". It is "" if n is not above 0.
func More(conjunction string, n int, noun string) string {
	switch {
	case n <= 0:
		return ""
	case noun == "":
		return fmt.Sprintf("%s%d more", conjunction, n)
	default:
		return conjunction + Plural(n, "more "+noun)
	}
}
