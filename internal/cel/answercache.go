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

// costly is from which cost on the answers of a condition are cached: the key of
// an answer costs less than evaluating again then.
const minCachedCost = 100

// bytesPerUnit is how many bytes of a spec are hashed in the time of one unit of
// cost.
const bytesPerUnit = 100

// mostAnswers bounds the cache: each takes some 250 bytes.
const maxCachedAnswers = 1 << 15

// answers caches what costly conditions answered, by expression and spec. Who
// writes a policy pays for its conditions once; a later write that leaves what
// they read as it is does not pay for them again.
var answerCache = lru.New(maxCachedAnswers)

// answerKey identifies an expression and the spec that it is evaluated on.
type answerKey [sha256.Size]byte

// key returns the key of the condition's answer for a spec, and what making it
// costs; ok is false for a spec that is not decoded JSON.
func (c *Condition) key(spec map[string]any) (key answerKey, cost uint64, ok bool) {
	e := keyEncoder{}
	e.text(c.expression)
	if !e.value(spec) {
		return key, 0, false
	}
	return sha256.Sum256(e.out), 1 + uint64(len(e.out))/bytesPerUnit, true
}

// keepable returns an answer without references to the spec.
func detached(a merge.Answer) merge.Answer {
	if a.Err != nil && !errors.Is(a.Err, ErrBudget) {
		a.Err = &EvalError{Cause: errors.New(a.Err.Error())}
	}
	return a
}

// encoding writes values as JSON with the names of maps sorted, as packed values
// are. A float is written by its bits, since 1 and 1.0 are not the same to an
// expression.
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

// packed appends the JSON that a packed value is, or what it unpacks to.
func (e *keyEncoder) packed(p merge.Packed) bool {
	if m, ok := p.(json.Marshaler); ok {
		data, err := m.MarshalJSON()
		e.out = append(e.out, data...)
		return err == nil
	}
	return e.value(p.Unpack())
}

// text appends a text as encoding/json writes it.
func (e *keyEncoder) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			e.escaped(s)
			return
		}
	}
	e.out = append(append(append(e.out, '"'), s...), '"')
}

// escaped appends a text that needs escapes. One that is not UTF-8 is distinguished
// from what it would be replaced by: it is written with its length.
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
