package merge

import "reflect"

// Packed is a map or a list that takes less memory than decoded JSON. Two of the same
// type have the same value if and only if they are ==.
type Packed interface {
	// Unpack returns the value as decoded JSON, a new one each time.
	Unpack() any
}

// Plain returns a value as decoded JSON: a Packed one is unpacked.
func Plain(value any) any {
	if p, ok := value.(Packed); ok {
		return p.Unpack()
	}
	return value
}

// UnpackMaps unpacks, in place, the values of a spec that was passed to a Condition, and
// returns the spec. Packed values are in its maps, at any depth, and never in a list.
// Shared maps are visited once.
func UnpackMaps(spec map[string]any) map[string]any {
	unpackMaps(spec, make(map[uintptr]bool))
	return spec
}

func unpackMaps(m map[string]any, seen map[uintptr]bool) {
	at := reflect.ValueOf(m).Pointer()
	if seen[at] {
		return
	}
	seen[at] = true
	for name, v := range m {
		switch v := v.(type) {
		case Packed:
			m[name] = v.Unpack()
		case map[string]any:
			unpackMaps(v, seen)
		}
	}
}

// Equal reports whether two values are the same, Packed or not. Numbers are
// compared by value: 1 and 1.0 are equal.
func Equal(a, b any) bool {
	p, packed := a.(Packed)
	q, also := b.(Packed)
	if packed && also && reflect.TypeOf(a) == reflect.TypeOf(b) {
		return p == q
	}
	return equal(Plain(a), Plain(b))
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (sameMap(a, b) || equalMaps(a, b))
	case []any:
		b, ok := b.([]any)
		return ok && (sameList(a, b) || equalLists(a, b))
	case int64, float64:
		return equalNumbers(a, b)
	case nil, bool, string:
		return a == b
	default:
		return false
	}
}

// sameMap reports whether both are the same map, as the values of a policy are before
// and after a change of another one.
func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

func sameList(a, b []any) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || !equal(v, w) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalNumbers(a, b any) bool {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return a == b
		}
		f, ok := b.(float64)
		return ok && float64(a) == f
	case float64:
		if b, ok := b.(int64); ok {
			return a == float64(b)
		}
		return a == b
	}
	return false
}
