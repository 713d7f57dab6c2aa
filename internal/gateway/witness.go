package gateway

import (
	"iter"
	"slices"
)

// Witness is a request that a rule serves.
type Witness struct {
	// Request is nil where there may be one, and none was found, because of regular
	// expressions.
	Request *Request
	// Unsearched is set if so many matches compete that no request was looked for.
	Unsearched bool
}

// Witnesses yields, for each match of a rule at a listener, a request that the rule serves
// there, and that meets as few other matches as possible: of all rules of the route where
// the rule is -1. A match that others precede for all of its requests has none. Once the
// lookups of the router have spent maxWork, the last one is not searched. The router must
// have a memo.
//
// For each hostname of another router's listeners that is more specific, it yields one
// more: that router may not serve requests for it.
func (r *Router) Witnesses(route *Route, rule int, at *ListenerMatch, other *Router) iter.Seq[Witness] {
	return func(yield func(Witness) bool) {
		for e := range r.entriesAt(route, at) {
			if e.match.rule != rule && rule >= 0 {
				continue
			}
			for _, h := range hostnamesIn(e, other) {
				if *r.memo.lookups > maxWork {
					yield(Witness{Unsearched: true})
					return
				}
				start := r.memo.work
				q, found := r.served(e, h)
				*r.memo.lookups += 1 + r.memo.work - start
				if found && !yield(Witness{Request: q}) {
					return
				}
			}
		}
	}
}

// served returns a request for a hostname that is served by a match, nil where there may
// be one and none was found, because of regular expressions.
func (r *Router) served(e entry, hostname string) (q *Request, found bool) {
	for nth := range tries(e, e) {
		q, unsure := witness(e, e, nth)
		if q == nil {
			found = found || unsure
			continue
		}
		q.setHost(hostname)
		s := r.Route(q)
		if s.Same(e.served()) {
			return q, true
		}
		found = found || s.hidesOnly(e, e)
	}
	return nil, found
}

// witness returns the request that meets two matches and as few others as possible, or
// nil: the nth of several where they have regular expressions. unsure is set if there may be
// one, and none was found.
func witness(e, f entry, nth int) (q *Request, unsure bool) {
	hostname := e.hostname
	if compareHostnames(f.hostname, e.hostname) < 0 {
		hostname = f.hostname
	}
	at := e.listener
	if at.Listener.transport() == TransportTCP {
		at = f.listener // which may read more of the connection
	}
	q = at.request(hostname)
	if q.Transport == TransportTCP || q.Transport == TransportUDP || e.listener.Service == nil && !e.route.readsRequests() && !f.route.readsRequests() {
		return q, false // connections
	}
	found, unsure := q.meetBoth(e.match, f.match, nth)
	if !found {
		return nil, unsure
	}
	return q, false
}

// readsRequests reports whether the rules of the route select requests, and not
// connections.
func (r *Route) readsRequests() bool { return r.Kind == KindHTTPRoute || r.Kind == KindGRPCRoute }

// meetBoth sets a request's path, method, headers and parameters to those that meet two
// matches and as few others as possible.
func (q *Request) meetBoth(a, b *routeMatch, nth int) (found, unsure bool) {
	if a.verb != "" && b.verb != "" && a.verb != b.verb {
		return false, false
	}
	q.Method = a.verb + b.verb
	switch {
	case a.verb == b.verb && a.verb != "":
		q.Method = a.verb
	case q.Method == "" && (a.grpc || b.grpc):
		q.Method = "POST"
	case q.Method == "":
		q.Method = freeVerb
	}
	if found, unsure = q.meetPaths(a, b, nth); !found {
		return false, unsure
	}
	var maybe bool
	if q.Headers, found, maybe = meetNamed(a.headers, b.headers, nth); !found {
		return false, maybe
	}
	q.Query, found, maybe = meetNamed(a.params, b.params, nth)
	return found, maybe
}

// meetPaths sets the path to one that meets the conditions of both matches.
func (q *Request) meetPaths(a, b *routeMatch, nth int) (found, unsure bool) {
	if !a.grpc && !b.grpc {
		if q.Path, found, unsure = meet(a.path, b.path, nth); q.Path == "" {
			q.Path = "/" + freeSegment
		}
		return found, unsure
	}
	q.GRPC = true
	var service, method string
	if service, found, unsure = meet(a.service, b.service, nth); !found {
		return false, unsure
	}
	if method, found, unsure = meet(a.method, b.method, nth); !found {
		return false, unsure
	}
	if service == "" {
		service = freeSegment
	}
	if method == "" {
		method = freeSegment
	}
	// of an HTTPRoute's match, the path decides which of the two are free
	paths := []string{"/" + service + "/" + method}
	for _, m := range []*routeMatch{a, b} {
		if m.path.op != anyValue {
			value, _, _ := m.path.example(nth)
			paths = append(paths, m.path.value, value, m.path.value+"/"+method, m.path.value+"/"+service+"/"+method)
		}
	}
	for _, q.Path = range paths {
		if a.takesPath(q) && b.takesPath(q) {
			return true, false
		}
	}
	return false, a.regex || b.regex
}

// meetNamed returns headers or parameters that meet the conditions of two matches.
func meetNamed(a, b []namedCondition, nth int) (out []Field, found, unsure bool) {
	add := func(name string, x, y condition) bool {
		var value string
		value, found, unsure = meet(x, y, nth)
		out = append(out, Field{name, value})
		return found
	}
	for _, c := range a {
		other := condition{}
		if i := slices.IndexFunc(b, func(o namedCondition) bool { return o.name == c.name }); i >= 0 {
			other = b[i].condition
		}
		if !add(c.name, c.condition, other) {
			return nil, false, unsure
		}
	}
	for _, c := range b {
		if !slices.ContainsFunc(a, func(o namedCondition) bool { return o.name == c.name }) && !add(c.name, c.condition, condition{}) {
			return nil, false, unsure
		}
	}
	return out, true, false
}
