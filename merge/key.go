package merge

import (
	"fmt"
	"strconv"
	"strings"
)

// Key is the path of a rule in a spec, such as rules.authentication.a.
// The zero Key is the spec itself.
//
// This file has only the form of keys. Which fields of a policy are rules, and with which
// keys, is decided in internal/policykind/split.go.
type Key struct {
	text string
	// path is the segments, each followed by a NUL, so that comparing two of
	// them compares segment by segment and a prefix is an ancestor.
	path string
}

// KeyOf returns the key with the given segments.
func KeyOf(segments ...string) Key {
	var k Key
	for _, s := range segments {
		k = k.Child(s)
	}
	return k
}

// Child returns the key of a segment below k.
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

// String returns the key in the format of ParseKey: segments joined by dots, and a
// segment with a character outside [A-Za-z0-9_-] as ["…"].
func (k Key) String() string { return k.text }

// Compare orders keys segment by segment, an ancestor before its descendants.
func (k Key) Compare(o Key) int { return strings.Compare(k.path, o.path) }

// Holds reports whether o is k or below it.
func (k Key) Holds(o Key) bool { return strings.HasPrefix(o.path, k.path) }

// Segments returns the segments of the key, the outermost first.
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

// Ancestor returns the key of the first n segments of k, which is k itself if it has n
// segments. ok is false if it has fewer.
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
	case strings.IndexByte(k.text, '[') >= 0: // offsets in text and path differ
		return KeyOf(k.Segments()[:n]...), true
	default:
		return Key{text: k.text[:end-1], path: k.path[:end]}, true
	}
}

// split splits a key other than the zero Key into the path of its parent and its
// innermost segment.
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

// ParseKey parses a key in the format of String.
func ParseKey(text string) (Key, error) {
	if text == "" {
		return Key{}, fmt.Errorf("a rule key must not be empty")
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

// cutSegment splits off the first segment of text.
func cutSegment(text string, first bool) (segment, rest string, err error) {
	if strings.HasPrefix(text, "[") {
		quoted, err := strconv.QuotedPrefix(text[1:])
		if err != nil {
			return "", "", fmt.Errorf(`expected a quoted name after "[", as in ["a.b"]`)
		}
		rest, ok := strings.CutPrefix(text[1+len(quoted):], "]")
		if !ok {
			return "", "", fmt.Errorf(`missing "]" after %s`, quoted)
		}
		segment, err := strconv.Unquote(quoted)
		return segment, rest, err
	}
	if !first {
		var dot bool
		if text, dot = strings.CutPrefix(text, "."); !dot {
			return "", "", fmt.Errorf("expected a dot before %q", text)
		}
	}
	end := strings.IndexFunc(text, func(r rune) bool { return !plainRune(r) })
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return "", "", fmt.Errorf(`%q is not a valid name; write a name with characters other than letters, digits, "_" and "-" as ["…"]`, text)
	}
	return text[:end], text[end:], nil
}

func plain(segment string) bool {
	return segment != "" && strings.IndexFunc(segment, func(r rune) bool { return !plainRune(r) }) < 0
}

func plainRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// escape escapes NUL, the separator of path, in a segment.
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
