package constraint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// place is the path of a rule, such as limits.*.rates[*].limit, or that of one value.
type place []step

// step is one step of a place.
type step struct {
	kind  stepKind
	name  string
	index int
}

// stepKind is the kind of a step into a value.
type stepKind uint8

const (
	byName  stepKind = iota // one field
	byIndex                 // one item of a list, in the place of a value
	anyName                 // each field of an object: *
	anyItem                 // each item of a list: [*]
)

// stepText matches a step in the path of a rule. A name with other characters than
// letters, digits, "_" and "-" is quoted.
var stepText = regexp.MustCompile(`^(?:(\.?)(\*|[A-Za-z0-9_-]+)|\[(\*|"(?:[^"\\]|\\.)*")\])`)

// parsePlace parses the path of a rule.
func parsePlace(text string) (place, error) {
	var out place
	for rest := text; rest != "" || out == nil; {
		m := stepText.FindStringSubmatch(rest)
		if m == nil || m[2] != "" && (m[1] == ".") != (out != nil) {
			return nil, fmt.Errorf(`must be a path such as limits.*.rates[*].limit or limits["a.b"].rates: cannot read %q`, rest)
		}
		rest = rest[len(m[0]):]
		switch {
		case m[2] == "*":
			out = append(out, step{kind: anyName})
		case m[3] == "*":
			out = append(out, step{kind: anyItem})
		case m[2] != "":
			out = append(out, step{name: m[2]})
		default:
			name, err := strconv.Unquote(m[3])
			if err != nil {
				return nil, fmt.Errorf("%s is not a quoted name", m[3])
			}
			out = append(out, step{name: name})
		}
		if len(out) > maxSteps {
			return nil, fmt.Errorf("must have at most %d segments", maxSteps)
		}
	}
	return out, nil
}

// String returns the place as parsePlace parses it.
func (p place) String() string {
	var out strings.Builder
	for i, s := range p {
		var text string
		switch s.kind {
		case byName:
			text = merge.KeyOf(s.name).String()
		case byIndex:
			text = "[" + strconv.Itoa(s.index) + "]"
		case anyName:
			text = "*"
		case anyItem:
			text = "[*]"
		}
		if i > 0 && text[0] != '[' {
			out.WriteByte('.')
		}
		out.WriteString(text)
	}
	return out.String()
}

// in returns the value at the place of a value in another spec, nil if there is none.
func (p place) in(v any) any {
	for _, s := range p {
		object, _ := v.(map[string]any)
		list, _ := v.([]any)
		switch {
		case s.kind == byName:
			v = object[s.name]
		case s.kind == byIndex && s.index < len(list):
			v = list[s.index]
		default:
			return nil
		}
	}
	return v
}

// walk finds values and counts those that it visits.
type walk struct {
	visited uint64
	// opaque is set once a path leads to an opaque value.
	opaque bool
}

// each calls found with each value on a path below v, which is at a place, except nulls.
// The place is valid during the call.
func (w *walk) each(v any, at, path place, found func(v any, at place)) {
	w.visited++
	switch v {
	case nil:
		return
	case cel.Opaque:
		w.opaque = true
	}
	if len(path) == 0 {
		found(v, at)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		switch path[0].kind {
		case byName:
			w.each(v[path[0].name], append(at, path[0]), path[1:], found)
		case anyName:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				w.each(v[name], append(at, step{name: name}), path[1:], found)
			}
		case anyItem, byIndex:
		}
	case []any:
		if path[0].kind == anyItem {
			for i, item := range v {
				w.each(item, append(at, step{kind: byIndex, index: i}), path[1:], found)
			}
		}
	}
}
