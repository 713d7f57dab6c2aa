package merge

import "strings"

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
