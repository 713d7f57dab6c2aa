package cel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/utils/lru"

	"overrule.dev/overrule/merge"
)

// answerCache caches the answers of expensive conditions by expression and spec, so
// that a later write that does not change what they read does not evaluate them again.
var answerCache = lru.New(maxCachedAnswers)

// answerKey identifies an expression and the spec that it is evaluated on.
type answerKey [sha256.Size]byte

// key returns the cache key of the condition's answer for a spec, and the cost of
// computing the key. ok is false for a spec that is not decoded JSON.
func (c *Condition) key(spec map[string]any) (key answerKey, cost uint64, ok bool) {
	e := keyEncoder{}
	if !e.value(c.expression) || !e.value(spec) {
		return key, 0, false
	}
	return sha256.Sum256(e.out), 1 + uint64(len(e.out))/bytesPerUnit, true
}

// detached returns an answer without references to the spec.
func detached(a merge.Answer) merge.Answer {
	if a.Err != nil && !errors.Is(a.Err, ErrBudget) {
		a.Err = &EvalError{Cause: errors.New(a.Err.Error())}
	}
	return a
}

// keyEncoder encodes values with sorted names, and packed values as their JSON. A float is
// encoded by its bits, since an expression distinguishes 1 and 1.0.
type keyEncoder struct{ out []byte }

// value appends a value, and reports whether it is decoded JSON.
func (e *keyEncoder) value(v any) bool {
	switch v := v.(type) {
	case nil:
		e.out = append(e.out, "null"...)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case float64:
		e.out = binary.BigEndian.AppendUint64(append(e.out, 'f'), math.Float64bits(v))
	case string:
		e.out = strconv.AppendQuote(e.out, v)
	case []any:
		e.out = append(e.out, '[')
		for i, item := range v {
			if i > 0 {
				e.out = append(e.out, ',')
			}
			if !e.value(item) {
				return false
			}
		}
		e.out = append(e.out, ']')
	case map[string]any:
		e.out = append(e.out, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				e.out = append(e.out, ',')
			}
			e.out = append(strconv.AppendQuote(e.out, name), ':')
			if !e.value(v[name]) {
				return false
			}
		}
		e.out = append(e.out, '}')
	case merge.Packed:
		if m, ok := v.(json.Marshaler); ok {
			data, err := m.MarshalJSON()
			e.out = append(e.out, data...)
			return err == nil
		}
		return e.value(v.Unpack())
	default:
		return false
	}
	return true
}
