package cache

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is a resource that is ignored because it cannot be read.
type Problem struct {
	// Resource is the name of its CustomResourceDefinition, or its plural name if it
	// has none.
	Resource string
	// Err says why, and what to do about it.
	Err error
}

// String returns the resource and the error.
func (p Problem) String() string { return fmt.Sprintf("read %s: %v", p.Resource, p.Err) }

func sortProblems(all []Problem) []Problem {
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Err.Error(), b.Err.Error()))
	})
	return all
}
