package ratelimit

import "slices"

// IsRateLimit reports whether decoded JSON is a limit of the RFC. It looks for what
// only such limits have: triggers, a unit or a duration of a rate, a selector of a
// condition, a counter that is a string. Limits of other versions have rates with a
// window, counters with an expression and conditions with a predicate.
//
// It is true for a list of such limits too: two of the RFC's examples are lists, and
// Read returns an error for them.
func IsRateLimit(value any) bool {
	if list, ok := value.([]any); ok {
		return anyItem(list, isLimit)
	}
	return isLimit(value)
}

func isLimit(value any) bool {
	limit, ok := value.(map[string]any)
	if !ok {
		return false
	}
	if _, ok := limit["triggers"]; ok {
		return true
	}
	return anyItem(limit["rates"], hasAnyField("unit", "duration")) ||
		anyItem(limit["when"], hasAnyField("selector")) ||
		anyItem(limit["counters"], isString)
}

func anyItem(value any, is func(any) bool) bool {
	list, _ := value.([]any)
	return slices.ContainsFunc(list, is)
}

func hasAnyField(fields ...string) func(any) bool {
	return func(value any) bool {
		object, _ := value.(map[string]any)
		for _, name := range fields {
			if _, ok := object[name]; ok {
				return true
			}
		}
		return false
	}
}

func isString(value any) bool {
	_, ok := value.(string)
	return ok
}
