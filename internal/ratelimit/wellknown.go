package ratelimit

import "regexp"

// place is one in the well-known data structure.
type place struct {
	// below are the places that are known below this one.
	below map[string]*place
	// open: anything may be below.
	open bool
	// name is what below this place is one name, dots and all.
	name *regexp.Regexp
	// value: the place is one, or may be, so that it can be selected.
	value bool
	// example of what is below a place that is no value.
	example string
}

var (
	plain  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	header = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+^_`|~-]+(\\.[A-Za-z0-9!#$%&'*+^_`|~-]+)*$")
	label  = regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)*$`)
)

var anything = &place{open: true, value: true}

func leaf() *place { return &place{value: true} }

// peer is Envoy's AttributeContext.Peer, in its JSON names.
func peer() *place {
	return &place{example: "address", below: map[string]*place{
		"address":     anything,
		"service":     leaf(),
		"labels":      {name: label, example: "app"},
		"principal":   leaf(),
		"certificate": leaf(),
	}}
}

// wellKnown is the data structure of the RFC's "Well-known selectors": Envoy's
// AttributeContext, the dynamic metadata of the external authorization (whose
// parts are known as Authorino's; others may have others), and Envoy's
// RateLimitRequest.
var wellKnown = &place{below: map[string]*place{
	"context": {example: "request.http.path", below: map[string]*place{
		"source":      peer(),
		"destination": peer(),
		"request": {example: "http.path", below: map[string]*place{
			"time": {value: true, below: map[string]*place{"seconds": leaf(), "nanos": leaf()}},
			"http": {example: "path", below: map[string]*place{
				"id":       leaf(),
				"method":   leaf(),
				"headers":  {name: header, example: "x-user"},
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
	"auth": {open: true, example: "identity.username", below: map[string]*place{
		"identity":      anything,
		"metadata":      anything,
		"authorization": anything,
		"response":      anything,
		"callbacks":     anything,
	}},
	"ratelimit": {example: "domain", below: map[string]*place{
		"domain":      leaf(),
		"descriptors": {open: true, example: "x"},
		"hitsAddend":  leaf(),
	}},
}}
