package ratelimit

import "regexp"

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

func leaf() *attribute { return &attribute{selectable: true} }

// peer is Envoy's AttributeContext.Peer, in its JSON names.
func peer() *attribute {
	return &attribute{example: "address", children: map[string]*attribute{
		"address":     anyAttribute,
		"service":     leaf(),
		"labels":      {namePattern: label, example: "app"},
		"principal":   leaf(),
		"certificate": leaf(),
	}}
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
			"time": {selectable: true, children: map[string]*attribute{"seconds": leaf(), "nanos": leaf()}},
			"http": {example: "path", children: map[string]*attribute{
				"id":       leaf(),
				"method":   leaf(),
				"headers":  {namePattern: header, example: "x-user"},
				"path":     leaf(),
				"host":     leaf(),
				"scheme":   leaf(),
				"query":    leaf(),
				"fragment": leaf(),
				"size":     leaf(),
				"protocol": leaf(),
				"body":     leaf(),
				"raw_body": leaf(),
			}},
		}},
	}},
	"auth": {openEnded: true, example: "identity.username", children: map[string]*attribute{
		"identity":      anyAttribute,
		"metadata":      anyAttribute,
		"authorization": anyAttribute,
		"response":      anyAttribute,
		"callbacks":     anyAttribute,
	}},
	"ratelimit": {example: "domain", children: map[string]*attribute{
		"domain":      leaf(),
		"descriptors": {openEnded: true, example: "x"},
		"hitsAddend":  leaf(),
	}},
}}
