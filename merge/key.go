package merge

import (
	"fmt"
	"strconv"
	"strings"
)

// Key is the address of a rule inside a spec, such as rules.authentication.a.
// The zero Key is the spec itself.
type Key struct {
	text string
	// path is the segments, each followed by a NUL, so that comparing two of
	// them compares segment by segment and a prefix is an ancestor.
	path string
}

// KeyOf returns the key of the given segments.
func KeyOf(segments ...string) Key {
	var k Key
	for _, s := range segments {
		k = k.Child(s)
	}
	return k
}

// Child returns the key of one segment below k.
func (k Key) Child(segment string) Key {
	text := k.text + `[` + strconv.Quote(segment) + `]`
	if plain(segment) {
		text = k.text + "." + segment
		if k.text == "" {
			text = segment
		}
	}
	return Key{text: text, path: k.path + escape(segment) + "\x00"}
}

// String returns the key as people write it: segments joined by dots, and a
// segment with a character outside [A-Za-z0-9_-] as ["…"].
func (k Key) String() string { return k.text }

// Compare orders keys segment by segment, an ancestor before what is below it.
func (k Key) Compare(o Key) int { return strings.Compare(k.path, o.path) }

// Holds reports whether o is k itself or lies below it.
func (k Key) Holds(o Key) bool { return strings.HasPrefix(o.path, k.path) }

// Segments returns the parts of the key, outermost first.
func (k Key) Segments() []string {
	if k.path == "" {
		return nil
	}
	parts := strings.Split(strings.TrimSuffix(k.path, "\x00"), "\x00")
	for i, p := range parts {
		parts[i] = unescape(p)
	}
	return parts
}

// Ancestor returns the key of the first n segments of k; ok is false if it has
// fewer. It is k itself for as many as it has.
func (k Key) Ancestor(n int) (a Key, ok bool) {
	end := 0
	for range n {
		i := strings.IndexByte(k.path[end:], 0)
		if i < 0 {
			return Key{}, false
		}
		end += i + 1
	}
	switch {
	case end == 0:
		return Key{}, true
	case strings.IndexByte(k.text, '[') >= 0: // the text does not run beside the path
		return KeyOf(k.Segments()[:n]...), true
	default:
		return Key{text: k.text[:end-1], path: k.path[:end]}, true
	}
}

// split parts a key other than the zero one into the path of the key above it
// and its innermost segment.
func (k Key) split() (up, segment string) {
	last := len(k.path) - 1
	at := strings.LastIndexByte(k.path[:last], 0) + 1
	return k.path[:at], unescape(k.path[at:last])
}

// name returns the innermost segment as a path of its own, "" for the zero key.
func (k Key) name() string {
	end := max(len(k.path)-1, 0)
	return k.path[strings.LastIndexByte(k.path[:end], 0)+1:]
}

// ParseKey reads a key in the form that String gives.
func ParseKey(text string) (Key, error) {
	if text == "" {
		return Key{}, fmt.Errorf("a rule key cannot be empty")
	}
	var k Key
	rest := text
	for rest != "" {
		segment, left, err := cutSegment(rest, k.text == "")
		if err != nil {
			return Key{}, fmt.Errorf("rule key %q: %w", text, err)
		}
		k, rest = k.Child(segment), left
	}
	return k, nil
}

// cutSegment takes one segment off the front of text.
func cutSegment(text string, first bool) (segment, rest string, err error) {
	if strings.HasPrefix(text, "[") {
		quoted, err := strconv.QuotedPrefix(text[1:])
		if err != nil {
			return "", "", fmt.Errorf(`after "[" a quoted name must follow, as in ["a.b"]`)
		}
		rest, ok := strings.CutPrefix(text[1+len(quoted):], "]")
		if !ok {
			return "", "", fmt.Errorf(`"]" is missing after %s`, quoted)
		}
		segment, err := strconv.Unquote(quoted)
		return segment, rest, err
	}
	if !first {
		var dot bool
		if text, dot = strings.CutPrefix(text, "."); !dot {
			return "", "", fmt.Errorf("a dot must stand before %q", text)
		}
	}
	end := strings.IndexFunc(text, func(r rune) bool { return !plainRune(r) })
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return "", "", fmt.Errorf(`%q is no name; one with other characters than letters, digits, "_" and "-" is written ["…"]`, text)
	}
	return text[:end], text[end:], nil
}

func plain(segment string) bool {
	return segment != "" && strings.IndexFunc(segment, func(r rune) bool { return !plainRune(r) }) < 0
}

func plainRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// escape keeps NUL, the separator of path, out of a segment.
func escape(segment string) string {
	if !strings.ContainsAny(segment, "\x00\x01") {
		return segment
	}
	return strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02").Replace(segment)
}

func unescape(part string) string {
	if strings.IndexByte(part, 1) < 0 {
		return part
	}
	return strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01").Replace(part)
}
