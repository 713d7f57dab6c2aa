package ratelimit

import (
	"errors"
	"fmt"
	"strings"
)

// CheckCounter checks the selector of a counter: a path into the well-known data
// structure that ends at a value. The error says what to write instead.
func CheckCounter(selector string) error {
	_, err := resolve(selector)
	return err
}

// CheckCondition checks the selector of a condition: as of a counter, but none of
// the attributes that a trigger expresses.
func CheckCondition(selector string) error {
	if place := triggerField(selector); place != "" {
		return fmt.Errorf("is not for conditions: write it as %s, since the rules of a route are chosen there", place)
	}
	meant, err := resolve(selector)
	if place := triggerField(meant); place != "" {
		return fmt.Errorf("is no well-known selector: if %s is meant, write it as %s, since the rules of a route are chosen there", truncate(meant), place)
	}
	return err
}

// expressed is where a trigger expresses an attribute of the HTTP request.
var triggerFields = map[string]string{
	"method":  "triggers[].matches[].method",
	"path":    "triggers[].matches[].path",
	"headers": "triggers[].matches[].headers",
	"query":   "triggers[].matches[].queryParams",
	"host":    "triggers[].hostnames",
}

func triggerField(selector string) string {
	attribute, ok := strings.CutPrefix(selector, "context.request.http.")
	if !ok {
		return ""
	}
	attribute, _, _ = strings.Cut(attribute, ".")
	return triggerFields[attribute]
}

// binding is the descriptor that ties a rule to its limit.
const bindingDescriptor = "ratelimit.binding"

// check returns the selector that is meant, if one is near, with the error.
func resolve(selector string) (meant string, err error) {
	if selector == bindingDescriptor || strings.HasPrefix(selector, bindingDescriptor+".") {
		return "", errors.New(bindingDescriptor + " is reserved: it tells which limit a rule is bound to; write another selector")
	}
	segments := Segments(selector)
	if err := checkSegments(segments); err != nil {
		return "", err
	}
	p := wellKnown
	for i, segment := range segments {
		if p.namePattern != nil {
			return "", nil
		}
		next, known := p.children[segment]
		if !known {
			return p.unknownSegment(segments, i)
		}
		p = next
	}
	if !p.selectable {
		return "", fmt.Errorf("is not a value but what holds some: write one of those, such as %s.%s", selector, p.example)
	}
	return "", nil
}

// stray judges a segment that is not one of those that are known here.
func (p *attribute) unknownSegment(segments []string, i int) (string, error) {
	if p.openEnded && closestWord(segments[i], sortedKeys(p.children)) == "" {
		return "", nil
	}
	if meant := suggest(segments); meant != "" {
		return meant, fmt.Errorf("is no well-known selector: did you mean %s?", truncate(meant))
	}
	if i == 0 {
		return "", errors.New("is no well-known selector: they start with auth, context.destination, context.request.http, context.source or ratelimit")
	}
	at := strings.Join(segments[:i], ".")
	if len(p.children) == 0 {
		return "", fmt.Errorf("is no well-known selector: %s is a value, nothing is below it", at)
	}
	return "", fmt.Errorf("is no well-known selector: %s has %s", at, joinAnd(sortedKeys(p.children)))
}

// Segments returns the parts of a selector. The name of a header or of a label is
// one part, dots and all.
func Segments(selector string) []string {
	var segments []string
	for p, rest := wellKnown, selector; ; {
		if p.namePattern != nil {
			return append(segments, rest)
		}
		segment, behind, more := strings.Cut(rest, ".")
		segments = append(segments, segment)
		if !more {
			return segments
		}
		next, known := p.children[segment]
		if !known {
			next = anyAttribute
		}
		p, rest = next, behind
	}
}

// spelled checks the letters of the segments.
func checkSegments(segments []string) error {
	p := wellKnown
	for _, segment := range segments {
		allowed := plain
		if p.namePattern != nil {
			allowed = p.namePattern
		}
		if strings.Contains(segment, `\`) {
			return errors.New(`is no selector: dots cannot be escaped in one with \; write it like auth.identity.username`)
		}
		if !allowed.MatchString(segment) {
			return fmt.Errorf("is no selector: %q cannot stand between dots; write it like auth.identity.username", truncate(segment))
		}
		next, known := p.children[segment]
		if !known {
			next = anyAttribute
		}
		p = next
	}
	return nil
}
