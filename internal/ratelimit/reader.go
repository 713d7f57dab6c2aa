package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// most is how many there may be of anything that a limit lists: no policy that a
// person wrote has as many, and none is slow to judge.
const maxItems = 64

// longest text of a limit, in bytes, where Gateway API states no other bound.
const maxTextLength = 1024

// reader reads decoded JSON and collects what is wrong with it. A field that is
// null is as one that is not there, as the API server has it.
type reader struct {
	errs field.ErrorList
	// budget of the policy; over is whether an error says that it is spent.
	budget         *Budget
	budgetExceeded bool
}

func (r *reader) addError(err *field.Error) { r.errs = append(r.errs, err) }

// object returns the fields, after telling those that are not known.
func (r *reader) object(at *field.Path, value any, of objectFields) (map[string]any, bool) {
	fields, ok := value.(map[string]any)
	if !ok {
		r.addError(field.TypeInvalid(at, typeName(value), of.name+" is an object: write its fields, "+joinAnd(of.fields)))
		return nil, false
	}
	for _, name := range sortedKeys(fields) {
		if !slices.Contains(of.fields, name) {
			r.addError(field.Forbidden(at.Child(truncate(name)), of.unknownFieldDetail(name)))
		}
	}
	return fields, true
}

// list returns at most `most` items: null has none.
func (r *reader) list(at *field.Path, value any, maxLen int) []any {
	if value == nil {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		r.addError(field.TypeInvalid(at, typeName(value), "must be a list: put a dash before each item"))
		return nil
	}
	if len(items) > maxLen {
		r.addError(field.TooMany(at, len(items), maxLen))
		return nil
	}
	return items
}

// text returns a string of at most so many bytes.
func (r *reader) text(at *field.Path, value any, maxLen int) (string, bool) {
	s, ok := value.(string)
	switch {
	case value == nil:
		r.addError(field.Required(at, "must be a string"))
		return "", false
	case !ok:
		r.addError(field.TypeInvalid(at, typeName(value), "must be a string: put it in quotes"))
		return "", false
	case len(s) > maxLen:
		r.addError(field.TooLong(at, "", maxLen))
		return "", false
	}
	return s, true
}

// positive returns a whole number from 1 on.
func (r *reader) positive(at *field.Path, value any) (int64, bool) {
	var n int64
	switch v := value.(type) {
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) { // so is what is not a number
			r.addError(field.Invalid(at, v, "must be a whole number, at least 1"))
			return 0, false
		}
		// 2^63, the least that fits no int64: MaxInt64 itself is no float64
		if v >= 1<<63 {
			r.addError(field.Invalid(at, v, fmt.Sprintf("is too large: at most %d", int64(math.MaxInt64))))
			return 0, false
		}
		n = int64(max(v, math.MinInt64))
	default:
		r.addError(field.TypeInvalid(at, typeName(value), "must be a whole number, at least 1, without quotes"))
		return 0, false
	}
	if n < 1 {
		r.addError(field.Invalid(at, n, "must be at least 1"))
		return 0, false
	}
	return n, true
}

// oneOf returns one of the values; what is absent is the fallback, which is
// required to be stated where it is "".
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

// shown cuts what a message repeats.
func truncate(s string) string {
	const enough = 100
	if len(s) <= enough {
		return s
	}
	return strings.ToValidUTF8(s[:enough], "") + "…"
}

// listed writes "a, b and c".
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
