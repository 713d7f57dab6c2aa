package cel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
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
// computing the key.
func (c *Condition) key(spec map[string]any) (key answerKey, cost uint64) {
	e := keyEncoder{}
	e.value(c.expression)
	e.value(spec)
	return sha256.Sum256(e.out), 1 + uint64(len(e.out))/bytesPerUnit
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

// value appends a value.
func (e *keyEncoder) value(v any) {
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
			e.value(item)
		}
		e.out = append(e.out, ']')
	case map[string]any:
		e.out = append(e.out, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				e.out = append(e.out, ',')
			}
			e.out = append(strconv.AppendQuote(e.out, name), ':')
			e.value(v[name])
		}
		e.out = append(e.out, '}')
	case merge.Packed:
		if m, ok := v.(json.Marshaler); ok {
			if data, err := m.MarshalJSON(); err == nil {
				e.out = append(e.out, data...)
				return
			}
		}
		e.value(v.Unpack())
	default:
		e.out = fmt.Appendf(e.out, "%T(%v)", v, v)
	}
}
