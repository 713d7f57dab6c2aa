package constraint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// stepKind is the kind of a step into a value.
type stepKind uint8

const (
	byName  stepKind = iota // one field
	anyName                 // each field of an object: *
	anyItem                 // each item of a list: [*]
)

// step is one step of an address.
type step struct {
	kind stepKind
	name string // where by name
}

// String returns the step as in an address.
func (s step) String() string {
	switch s.kind {
	case anyName:
		return "*"
	case anyItem:
		return "[*]"
	default:
		return merge.KeyOf(s.name).String()
	}
}

// address leads to values in an effective spec.
type address []step

// maxSteps bounds the length of an address.
const maxSteps = 64

// parseAddress parses an address such as limits.*.rates[*].limit. A name with
// other characters than letters, digits, "_" and "-" is written ["…"].
func parseAddress(text string) (address, error) {
	if text == "" {
		return nil, errors.New("must not be empty")
	}
	var out address
	for rest := text; rest != ""; {
		s, left, err := cutStep(rest, len(out) == 0)
		if err != nil {
			return nil, fmt.Errorf("must be a path such as limits.*.rates[*].limit: %w", err)
		}
		out, rest = append(out, s), left
		if len(out) > maxSteps {
			return nil, fmt.Errorf("must have at most %d segments", maxSteps)
		}
	}
	return out, nil
}

// cutStep parses the first step of text.
func cutStep(text string, first bool) (s step, rest string, err error) {
	if rest, ok := strings.CutPrefix(text, "[*]"); ok {
		return step{kind: anyItem}, rest, nil
	}
	if strings.HasPrefix(text, "[") {
		return cutQuoted(text)
	}
	if !first {
		var dot bool
		if text, dot = strings.CutPrefix(text, "."); !dot {
			return step{}, "", fmt.Errorf(`add "." before %q`, text)
		}
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	name, rest := text[:end], text[end:]
	if name == "*" {
		return step{kind: anyName}, rest, nil
	}
	k, err := merge.ParseKey(name)
	if err != nil {
		return step{}, "", fmt.Errorf(`name %q must consist of letters, digits, "_" and "-"; write any other name as ["name"]`, name)
	}
	return step{name: k.Segments()[0]}, rest, nil
}

func cutQuoted(text string) (s step, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(text[1:])
	if err != nil {
		return step{}, "", errors.New(`"[" must be followed by *] or a quoted name, as in ["a.b"]`)
	}
	rest, ok := strings.CutPrefix(text[1+len(quoted):], "]")
	if !ok {
		return step{}, "", fmt.Errorf(`add "]" after %s`, quoted)
	}
	name, err := strconv.Unquote(quoted)
	return step{name: name}, rest, err
}

// String returns the address as parseAddress parses it.
func (a address) String() string {
	var out strings.Builder
	for i, s := range a {
		text := s.String()
		if i > 0 && text[0] != '[' {
			out.WriteByte('.')
		}
		out.WriteString(text)
	}
	return out.String()
}

// match is a value at an address, and its location.
type match struct {
	value any
	at    *location
}

// location is the location of a value. It is formatted only when needed.
type location struct {
	up    *location
	name  string
	index int // -1 for a name
}

// String returns the location as an address.
func (l *location) String() string {
	if l == nil {
		return ""
	}
	above := l.up.String()
	if l.index >= 0 {
		return above + "[" + strconv.Itoa(l.index) + "]"
	}
	name := merge.KeyOf(l.name).String()
	if above == "" || name[0] == '[' {
		return above + name
	}
	return above + "." + name
}

// in returns the value at the location in another value, nil if there is none.
func (l *location) in(root any) any {
	if l == nil {
		return root
	}
	switch v := l.up.in(root).(type) {
	case map[string]any:
		return v[l.name]
	case []any:
		if l.index >= 0 && l.index < len(v) {
			return v[l.index]
		}
	}
	return nil
}

// finder finds values and counts those that it visits.
type finder struct {
	visited uint64
	// opaque is set once an address leads to an opaque value.
	opaque bool
}

// at returns the values at an address below a value, by name and position, without
// nulls.
func (f *finder) at(a address, from match) []match {
	all := []match{from}
	for _, s := range a {
		var next []match
		for _, v := range all {
			next = f.step(s, v, next)
		}
		all = next
	}
	return all
}

// step appends the values one step below a value.
func (f *finder) step(s step, from match, out []match) []match {
	f.visited++
	add := func(v any, name string, index int) {
		f.visited++
		f.opaque = f.opaque || v == cel.Opaque
		if v != nil {
			out = append(out, match{value: v, at: &location{from.at, name, index}})
		}
	}
	switch v := from.value.(type) {
	case map[string]any:
		switch s.kind {
		case byName:
			add(v[s.name], s.name, -1)
		case anyName:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				add(v[name], name, -1)
			}
		case anyItem:
		}
	case []any:
		if s.kind == anyItem {
			for i := range v {
				add(v[i], "", i)
			}
		}
	}
	return out
}
