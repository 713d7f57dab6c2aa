package merge

import "strings"

// specOf returns the nested spec of sorted rules, with plain values or as they are
// stored. It does not edit values, which are shared: a rule below another one, which
// only a block with nested rules has, is left out.
func specOf(rules []Effective, plain bool) map[string]any {
	spec := make(map[string]any)
	var covering *Effective
	at, parent := spec, "" // adjacent rules mostly have the same parent
	for i := range rules {
		e := &rules[i]
		if e.Value == nil || e.Key.path == "" || covering != nil && covering.Key.Holds(e.Key) {
			continue
		}
		if !e.EmptyMap {
			covering = e
		}
		up, name := e.Key.split()
		if up != parent {
			at, parent = descend(spec, up, below(rules[i:], up)), up
		}
		at[name] = valueOf(e, plain)
	}
	return spec
}

// below returns the number of rules at the front of a list whose keys are below a path,
// 0 for few. It is the capacity of the map for them, so that the map does not grow.
func below(rules []Effective, path string) int {
	if path == "" || len(rules) <= smallCount || !strings.HasPrefix(rules[smallCount].Key.path, path) {
		return 0
	}
	return countUpTo(rules, Key{path: path[:len(path)-1] + "\x01"}, 0) // which follows the NUL
}

// descend returns the map at the path of a key in a spec. It creates missing maps, the
// last one with a capacity of size.
func descend(spec map[string]any, path string, size int) map[string]any {
	for path != "" {
		var segment string
		segment, path, _ = strings.Cut(path, "\x00")
		segment = unescape(segment)
		next, ok := spec[segment].(map[string]any)
		if !ok {
			capacity := 0
			if path == "" {
				capacity = size
			}
			next = make(map[string]any, capacity)
			spec[segment] = next
		}
		spec = next
	}
	return spec
}

// valueOf returns the value of a rule for a spec. An empty map is a new one, because
// rules below it are added to it.
func valueOf(e *Effective, plain bool) any {
	switch {
	case e.EmptyMap:
		return make(map[string]any)
	case plain:
		return Plain(e.Value)
	default:
		return e.Value
	}
}
