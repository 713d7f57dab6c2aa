package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxItems is the maximum number of items of each list of a limit. It bounds the time
// that evaluation takes.
const maxItems = 64

// maxTextLength is the maximum length of a string in bytes, unless Gateway API sets
// another one.
const maxTextLength = 1024

// reader reads decoded JSON and collects the errors. A null field is treated as
// absent, as by the API server.
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

// list returns the items of a list, at most maxLen; none for null.
func (r *reader) list(at *field.Path, value any, maxLen int) []any {
	if value == nil {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		r.addError(field.TypeInvalid(at, typeName(value), "must be a list; put a dash before each item"))
		return nil
	}
	if len(items) > maxLen {
		r.addError(field.TooMany(at, len(items), maxLen))
		return nil
	}
	return items
}

// text returns a string of at most maxLen bytes.
func (r *reader) text(at *field.Path, value any, maxLen int) (string, bool) {
	s, ok := value.(string)
	switch {
	case value == nil:
		r.addError(field.Required(at, "must be a string"))
		return "", false
	case !ok:
		r.addError(field.TypeInvalid(at, typeName(value), "must be a string; put it in quotes"))
		return "", false
	case len(s) > maxLen:
		r.addError(field.TooLong(at, "", maxLen))
		return "", false
	}
	return s, true
}

// positive returns an integer that is at least 1.
func (r *reader) positive(at *field.Path, value any) (int64, bool) {
	var n int64
	switch v := value.(type) {
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) { // true for NaN, too
			r.addError(field.Invalid(at, v, "must be an integer of at least 1"))
			return 0, false
		}
		// 2^63 is the least float64 that overflows int64
		if v >= 1<<63 {
			r.addError(field.Invalid(at, v, fmt.Sprintf("must be at most %d", int64(math.MaxInt64))))
			return 0, false
		}
		n = int64(max(v, math.MinInt64))
	default:
		r.addError(field.TypeInvalid(at, typeName(value), "must be an integer of at least 1, without quotes"))
		return 0, false
	}
	if n < 1 {
		r.addError(field.Invalid(at, n, "must be at least 1"))
		return 0, false
	}
	return n, true
}

// oneOf returns one of the values, or the fallback if it is absent. Without a fallback
// the value is required.
func oneOf[T ~string](r *reader, at *field.Path, value any, of []T, fallback T) (T, bool) {
	if value == nil && fallback != "" {
		return fallback, true
	}
	if value == nil {
		r.addError(field.Required(at, "must be one of "+joinAnd(of)))
		return "", false
	}
	s, ok := value.(string)
	if !ok {
		r.addError(field.TypeInvalid(at, typeName(value), "must be one of "+joinAnd(of)))
		return "", false
	}
	if !slices.Contains(of, T(s)) {
		r.addError(field.NotSupported(at, truncate(s), of))
		return "", false
	}
	return T(s), true
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	default:
		return "number"
	}
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
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}
