package printers

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// valueAt returns the value in a spec at the key of a rule, nil if there is none.
func valueAt(spec map[string]any, rule string) any {
	key, err := merge.ParseKey(rule)
	if err != nil {
		return nil
	}
	var at any = spec
	for _, segment := range key.Segments() {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[segment]
	}
	return at
}

// byPath returns effective policies sorted by path, then policy kind.
func byPath(items []api.EffectivePolicy) []api.EffectivePolicy {
	out := slices.Clone(items)
	slices.SortStableFunc(out, func(a, b api.EffectivePolicy) int {
		if c := api.ComparePaths(a.Path, b.Path); c != 0 {
			return c
		}
		return effective.CompareItems(a, b)
	})
	return out
}

// redacted stands for a value that the user is not allowed to read.
const redacted = "(redacted)"

// shown returns a value in at most that many characters, or that it is redacted.
func shown(value any, hidden bool, most int) string {
	if hidden {
		return redacted
	}
	return short(value, most)
}
