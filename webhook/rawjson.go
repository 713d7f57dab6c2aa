package webhook

import (
	"bytes"
	"strings"
)

// unquoted returns a JSON string without its quotes. The API server makes such values
// of letters, digits and dashes.
func unquoted(value []byte) string {
	return strings.Trim(string(value), `"`)
}

// notEmpty reports whether a JSON value is present and not empty.
func notEmpty(value []byte) bool {
	switch strings.Join(strings.Fields(string(value)), "") {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}

// jsonField returns the raw value of a field of a JSON object, nil if it is absent. The
// object was decoded before, so it is valid; decoding all of it again for two values
// would take as long as most evaluations.
func jsonField(object []byte, name string) []byte {
	at := 0
	next := func() byte { // the next byte that is not a space
		for ; at < len(object); at++ {
			if !isSpace(object[at]) {
				return object[at]
			}
		}
		return 0
	}
	if next() != '{' {
		return nil
	}
	for at++; next() == '"'; at++ {
		key := object[at:valueEnd(object, at)]
		at += len(key)
		if next() != ':' {
			return nil
		}
		at++
		next()
		value := object[at:valueEnd(object, at)]
		if at += len(value); len(key) == len(name)+2 && string(key[1:len(key)-1]) == name {
			return value
		}
		if next() != ',' {
			return nil
		}
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// valueEnd returns the index behind the JSON value that starts at an index.
func valueEnd(data []byte, at int) int {
	depth := 0
	for ; at < len(data); at++ {
		switch data[at] {
		case '"':
			if at = stringEnd(data, at); depth == 0 {
				return min(at+1, len(data))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
			if depth < 0 {
				return at // a number at the end of an object
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	return len(data)
}

// stringEnd returns the index of the closing quote of the string that starts at an
// index.
func stringEnd(data []byte, at int) int {
	for at++; at < len(data); at++ {
		i := bytes.IndexAny(data[at:], `"\`)
		if i < 0 {
			break
		}
		if at += i; data[at] == '"' {
			return at
		}
		at++ // the escaped character
	}
	return len(data)
}
