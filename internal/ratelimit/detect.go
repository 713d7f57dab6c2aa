package ratelimit

import (
	"slices"

	"overrule.dev/overrule/internal/decode"
)

// IsRateLimit reports whether decoded JSON is a limit of the RFC. It looks for what
// only such limits have: triggers, a unit or a duration of a rate, a selector of a
// condition, a counter that is a string. Limits of other versions have rates with a
// window, counters with an expression and conditions with a predicate.
//
// It is true for a list of such limits too: two of the RFC's examples are lists, and
// Validate returns an error for them.
func IsRateLimit(value any) bool {
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, isLimit)
	}
	return isLimit(value)
}

func isLimit(value any) bool {
	limit, _ := value.(map[string]any)
	counters, _ := limit["counters"].([]any)
	return hasAny(limit, "triggers") ||
		anyHas(limit["rates"], "unit", "duration") || anyHas(limit["when"], "selector") ||
		slices.ContainsFunc(counters, func(c any) bool { _, ok := c.(string); return ok })
}

// anyHas reports whether an object of a list has any of the fields.
func anyHas(list any, fields ...string) bool {
	return slices.ContainsFunc(decode.Objects(list), func(o map[string]any) bool { return hasAny(o, fields...) })
}

func hasAny(object map[string]any, fields ...string) bool {
	return slices.ContainsFunc(fields, func(name string) bool { _, ok := object[name]; return ok })
}
