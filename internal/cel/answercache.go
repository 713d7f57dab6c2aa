package cel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/utils/lru"

	"overrule.dev/overrule/merge"
)

// minCachedCost is the cost of an evaluation from which on the answers of a condition
// are cached: computing the key of an answer is cheaper than evaluating again.
const minCachedCost = 100

// bytesPerUnit is the number of bytes of a spec that are hashed in the time of one
// unit of cost.
const bytesPerUnit = 100

// maxCachedAnswers bounds the cache. An entry takes some 250 bytes.
const maxCachedAnswers = 1 << 15

// answerCache caches the answers of expensive conditions by expression and spec, so
// that a later write that does not change what they read does not evaluate them again.
var answerCache = lru.New(maxCachedAnswers)

// answerKey identifies an expression and the spec that it is evaluated on.
type answerKey [sha256.Size]byte

// key returns the cache key of the condition's answer for a spec, and the cost of
// computing the key. ok is false for a spec that is not decoded JSON.
func (c *Condition) key(spec map[string]any) (key answerKey, cost uint64, ok bool) {
	e := keyEncoder{}
	e.text(c.expression)
	if !e.value(spec) {
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

// keyEncoder encodes values as JSON with sorted names, as packed values are. A float is
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
		e.text(v)
	case []any:
		return e.list(v)
	case map[string]any:
		return e.object(v)
	case merge.Packed:
		return e.packed(v)
	default:
		return false
	}
	return true
}

func (e *keyEncoder) list(items []any) bool {
	e.out = append(e.out, '[')
	for i, item := range items {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if !e.value(item) {
			return false
		}
	}
	e.out = append(e.out, ']')
	return true
}

func (e *keyEncoder) object(fields map[string]any) bool {
	e.out = append(e.out, '{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.text(name)
		e.out = append(e.out, ':')
		if !e.value(fields[name]) {
			return false
		}
	}
	e.out = append(e.out, '}')
	return true
}

// packed appends the JSON of a packed value, or of what it unpacks to.
func (e *keyEncoder) packed(p merge.Packed) bool {
	if m, ok := p.(json.Marshaler); ok {
		data, err := m.MarshalJSON()
		e.out = append(e.out, data...)
		return err == nil
	}
	return e.value(p.Unpack())
}

// text appends a string as encoding/json encodes it.
func (e *keyEncoder) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			e.escaped(s)
			return
		}
	}
	e.out = append(append(append(e.out, '"'), s...), '"')
}

// escaped appends a string that needs escapes. One that is not UTF-8 is appended with
// its length, so that it differs from the string that replaces its invalid bytes.
func (e *keyEncoder) escaped(s string) {
	var b bytes.Buffer
	j := json.NewEncoder(&b)
	j.SetEscapeHTML(false)
	if !utf8.ValidString(s) || j.Encode(s) != nil {
		e.out = append(append(strconv.AppendInt(append(e.out, 's'), int64(len(s)), 10), ':'), s...)
		return
	}
	e.out = append(e.out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
