package ratelimit

import (
	"regexp"

	"overrule.dev/overrule/internal/editdistance"
)

// attribute is a node of the well-known data structure.
type attribute struct {
	// children are the known attributes below this one.
	children map[string]*attribute
	// openEnded is set if there may be other attributes below it.
	openEnded bool
	// namePattern is set if the rest of a selector is one name, including its dots.
	namePattern *regexp.Regexp
	// selectable is set if the attribute is a value, or may be.
	selectable bool
	// example is a path below an attribute that is not selectable.
	example string
}

var (
	plain  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	header = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+^_`|~-]+(\\.[A-Za-z0-9!#$%&'*+^_`|~-]+)*$")
	label  = regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)*$`)
)

var anyAttribute = &attribute{openEnded: true, selectable: true}

// with adds attributes that are values.
func with(others map[string]*attribute, values ...string) map[string]*attribute {
	for _, name := range values {
		others[name] = &attribute{selectable: true}
	}
	return others
}

// peer is Envoy's AttributeContext.Peer, in its JSON names.
func peer() *attribute {
	return &attribute{example: "address", children: with(map[string]*attribute{
		"address": anyAttribute,
		"labels":  {namePattern: label, example: "app"},
	}, "service", "principal", "certificate")}
}

// wellKnown is the data structure of the RFC's "Well-known selectors": Envoy's
// AttributeContext, the dynamic metadata of the external authorization (whose
// parts are known as Authorino's; others may have others), and Envoy's
// RateLimitRequest.
var wellKnown = &attribute{children: map[string]*attribute{
	"context": {example: "request.http.path", children: map[string]*attribute{
		"source":      peer(),
		"destination": peer(),
		"request": {example: "http.path", children: map[string]*attribute{
			"time": {selectable: true, children: with(map[string]*attribute{}, "seconds", "nanos")},
			"http": {example: "path", children: with(map[string]*attribute{
				"headers": {namePattern: header, example: "x-user"},
			}, "id", "method", "path", "host", "scheme", "query", "fragment", "size", "protocol", "body", "raw_body")},
		}},
	}},
	"auth": {openEnded: true, example: "identity.username", children: map[string]*attribute{
		"identity":      anyAttribute,
		"metadata":      anyAttribute,
		"authorization": anyAttribute,
		"response":      anyAttribute,
		"callbacks":     anyAttribute,
	}},
	"ratelimit": {example: "domain", children: with(map[string]*attribute{
		"descriptors": {openEnded: true, example: "x"},
	}, "domain", "hitsAddend")},
}}

// nearest returns the selector below an attribute that is closest to the segments, with
// typos corrected and missing segments inserted, and how many edits it takes; of several,
// the first by name, and nil if none is close. Behind an inserted segment only known
// children count: an open-ended attribute would allow anything.
func (p *attribute) nearest(segments []string, inserted bool) (best []string, edits int) {
	switch {
	case len(segments) == 0 && p.selectable:
		return []string{}, 0
	case len(segments) == 0:
		return nil, 0
	case p.namePattern != nil:
		return segments, 0 // they are one name
	}
	consider := func(name string, rest []string, n int) {
		if rest != nil && (best == nil || n < edits) {
			best, edits = append([]string{name}, rest...), n
		}
	}
	names := sortedKeys(p.children)
	for _, name := range names {
		child := p.children[name]
		if d, near := editdistance.Typo(segments[0], name); near {
			rest, n := child.nearest(segments[1:], false)
			consider(name, rest, n+d)
		}
		if len(child.children) > 0 {
			rest, n := child.nearest(segments, true)
			consider(name, rest, n+1)
		}
	}
	if p.openEnded && !inserted && (best == nil || edits > 0) && editdistance.Closest(segments[0], names) == "" {
		return segments, 0
	}
	return best, edits
}
