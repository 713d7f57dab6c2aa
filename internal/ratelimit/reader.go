package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// maxItems is the maximum number of items of each list of a limit. It bounds the time
// that evaluation takes.
const maxItems = 64

// maxTextLength is the maximum length of a string in bytes, unless Gateway API sets
// another one.
const maxTextLength = 1024

// reader reads decoded JSON with its defaults, and collects the errors: after the first,
// what it returns does not matter. A null field is treated as absent, as by the API server.
type reader struct {
	errs           field.ErrorList
	budget         *Budget // of the policy
	budgetExceeded bool    // an error reports it already
}

func (r *reader) addError(err *field.Error) { r.errs = append(r.errs, err) }

// object returns the fields of an object, and adds an error for each unknown one.
func (r *reader) object(at *field.Path, value any, of objectFields) (map[string]any, bool) {
	fields, ok := value.(map[string]any)
	if !ok {
		r.addError(field.TypeInvalid(at, typeName(value), "must be an object with the fields "+joinAnd(of.fields)))
		return nil, false
	}
	for _, name := range sortedKeys(fields) {
		if !slices.Contains(of.fields, name) {
			r.addError(field.Forbidden(at.Child(truncate(name)), of.unknownFieldDetail(name)))
		}
	}
	return fields, true
}

// listOf reads the items of a list, at most maxLen; none for null.
func listOf[T any](r *reader, at *field.Path, value any, maxLen int, read func(*field.Path, any) T) []T {
	items, ok := value.([]any)
	switch {
	case value == nil:
		return nil
	case !ok:
		r.addError(field.TypeInvalid(at, typeName(value), "must be a list; put a dash before each item"))
	case len(items) > maxLen:
		r.addError(field.TooMany(at, len(items), maxLen))
		return nil
	}
	var out []T
	for i, item := range items {
		out = append(out, read(at.Index(i), item))
	}
	return out
}

// distinct reads as another function does, and adds an error for each text that it has read
// before.
func (r *reader) distinct(read func(*field.Path, any) string) func(*field.Path, any) string {
	var seen []string
	return func(at *field.Path, value any) string {
		text := read(at, value)
		if text != "" && slices.Contains(seen, text) {
			r.addError(field.Duplicate(at, text))
		}
		seen = append(seen, text)
		return text
	}
}

// text returns a string of at most maxLen bytes.
func (r *reader) text(at *field.Path, value any, maxLen int) (string, bool) {
	s, ok := value.(string)
	switch {
	case value == nil:
		r.addError(field.Required(at, "must be a string"))
	case !ok:
		r.addError(field.TypeInvalid(at, typeName(value), "must be a string; put it in quotes"))
	case len(s) > maxLen:
		r.addError(field.TooLong(at, "", maxLen))
	default:
		return s, true
	}
	return "", false
}

// positive returns an integer that is at least 1.
func (r *reader) positive(at *field.Path, value any) int64 {
	n, ok := value.(int64)
	if v, isFloat := value.(float64); isFloat {
		if v != math.Trunc(v) { // true for NaN, too
			r.addError(field.Invalid(at, v, "must be an integer of at least 1"))
			return 0
		}
		// 2^63 is the least float64 that overflows int64
		if v >= 1<<63 {
			r.addError(field.Invalid(at, v, fmt.Sprintf("must be at most %d", int64(math.MaxInt64))))
			return 0
		}
		n, ok = int64(max(v, math.MinInt64)), true
	}
	switch {
	case !ok:
		r.addError(field.TypeInvalid(at, typeName(value), "must be an integer of at least 1, without quotes"))
	case n < 1:
		r.addError(field.Invalid(at, n, "must be at least 1"))
	}
	return n
}

// oneOf returns a value that is one of several.
func oneOf[T ~string](r *reader, at *field.Path, value any, of []T) T {
	s, ok := value.(string)
	switch {
	case value == nil:
		r.addError(field.Required(at, "must be one of "+joinAnd(of)))
	case !ok:
		r.addError(field.TypeInvalid(at, typeName(value), "must be one of "+joinAnd(of)))
	case !slices.Contains(of, T(s)):
		r.addError(field.NotSupported(at, truncate(s), of))
	default:
		return T(s)
	}
	return ""
}

func typeName(value any) string {
	if _, ok := value.(int64); ok {
		return "integer"
	}
	return decode.TypeName(value)
}

// truncate shortens a string of the user for a message.
func truncate(s string) string {
	const maxShown = 100
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// joinAnd returns "a, b and c".
func joinAnd[T ~string](words []T) string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return api.JoinNames(all)
}
