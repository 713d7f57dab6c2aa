package webhook

import (
	"bytes"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/inflight"
)

// stampOf reads by what a write will be known when it is seen: the uid that the
// API server gave to what is created, or the version of what is stored. What
// is not there is left empty.
func preconditionOf(r *admissionv1.AdmissionRequest) inflight.Precondition {
	data := []byte(r.OldObject.Raw)
	if r.Operation == admissionv1.Create {
		data = r.Object.Raw
	}
	metadata := jsonField(data, "metadata")
	return inflight.Precondition{UID: types.UID(unquoted(jsonField(metadata, "uid"))), Version: unquoted(jsonField(metadata, "resourceVersion"))}
}

// text is a JSON string that the API server makes of letters, digits and dashes.
func unquoted(value []byte) string {
	return strings.Trim(string(value), `"`)
}

// member returns the value of a member of a JSON object as it stands there, nil
// if there is none. The object was read before, so it is valid; to decode it all
// again for two words would take as long as judging most writes.
func jsonField(object []byte, name string) []byte {
	at := 0
	next := func() byte { // the next that is no space
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

// valueEnd returns where the JSON value ends that starts at a place.
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
				return at // of the object around a number
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	return len(data)
}

// stringEnd returns where the closing quote is of the string that starts at a
// place.
func stringEnd(data []byte, at int) int {
	for at++; at < len(data); at++ {
		i := bytes.IndexAny(data[at:], `"\`)
		if i < 0 {
			break
		}
		if at += i; data[at] == '"' {
			return at
		}
		at++ // what is escaped
	}
	return len(data)
}
