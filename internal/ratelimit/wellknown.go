package ratelimit

import (
	"regexp"
	"slices"
	"strings"

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

// suggest returns the well-known selector that is closest to the segments, with typos
// corrected and missing segments inserted. It is empty if none is close.
func suggest(segments []string) string {
	var s search
	s.walk(wellKnown, nil, segments, 0, false)
	return strings.Join(s.best, ".")
}

// search keeps the selector of the least cost; of several, the first by name.
type search struct {
	best []string
	cost int
}

func (s *search) consider(cost int, path ...[]string) {
	if s.best != nil && cost >= s.cost {
		return
	}
	s.cost, s.best = cost, []string{}
	for _, part := range path {
		s.best = append(s.best, part...)
	}
}

// walk tries the rest of the segments below an attribute. After an inserted segment
// only known children are tried: an open-ended attribute would allow anything.
func (s *search) walk(p *attribute, path, rest []string, cost int, inserted bool) {
	switch {
	case len(rest) == 0:
		if p.selectable {
			s.consider(cost, path)
		}
		return
	case p.namePattern != nil:
		s.consider(cost, path, rest) // the rest is one name
		return
	}
	names := sortedKeys(p.children)
	for _, name := range names {
		next := append(slices.Clip(path), name)
		if d, near := editdistance.Typo(rest[0], name); near {
			s.walk(p.children[name], next, rest[1:], cost+d, false)
		}
		if len(p.children[name].children) > 0 {
			s.walk(p.children[name], next, rest, cost+1, true)
		}
	}
	if p.openEnded && !inserted && editdistance.Closest(rest[0], names) == "" {
		s.consider(cost, path, rest)
	}
}
