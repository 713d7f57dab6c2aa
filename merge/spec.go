package merge

import "strings"

// specOf builds the nested spec of sorted rules, their values plain or as they
// are held. It never writes into a value,
// which is not its own: a rule that lies below another one, as only a block
// that is not tidy can have it, is not shown.
func specOf(rules []Effective, plain bool) map[string]any {
	spec := make(map[string]any)
	var covering *Effective
	at, parent := spec, "" // neighbours mostly share their parent
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

// below counts the rules at the front of a list whose keys lie below a path, if
// they are many: a map that is made for them does not grow then.
func below(rules []Effective, path string) int {
	if path == "" || len(rules) <= smallCount || !strings.HasPrefix(rules[smallCount].Key.path, path) {
		return 0
	}
	return countUpTo(rules, Key{path: path[:len(path)-1] + "\x01"}, 0) // which follows the NUL
}

// descend returns the map below a spec at the path of a key, made with room for
// so many if need be.
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

// valueOf returns the value to put into a spec: a hollow one is made anew,
// because rules below it are written into it.
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
