package gateway

import (
	"cmp"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Move is a request, and where it goes before and after a change.
type Move struct {
	From, To Served
	// Request is a witness: it was sent through both routers. It is nil where it is not
	// known whether there is one, because of regular expressions. Other is a request that
	// From serves then, and To may not take, nil if none is known.
	Request, Other *Request
	// Unsearched is set if so many matches compete that no request was looked for.
	Unsearched bool

	before, after *Router
}

// newMove returns where a request goes before and after a change.
func newMove(q *Request, before, after *Router) Move {
	return Move{From: before.Route(q), To: after.Route(q), Request: q, before: before, after: after}
}

// Witnesses yields, for each match of the rule of a path at each of its listeners, a request
// that the rule serves there, and that meets as few other matches as possible: of all rules of
// the route where the rule is -1. A match that others precede for all of its requests has none.
// They go to where another router, which may be nil, has them. Once the lookups of the
// router have spent maxWork, the last one is not searched.
//
// For each hostname of the other router's listeners that is more specific, it yields one
// more: that router may not serve requests for it.
func (r *Router) Witnesses(p *Path, other *Router) iter.Seq[Move] {
	return func(yield func(Move) bool) {
		for _, at := range r.ListenersAt(p) {
			for e := range r.entriesAt(p.Route, p.Rule, &at) {
				if !r.witnessesOf(e, other, yield) {
					return
				}
			}
		}
	}
}

func (r *Router) witnessesOf(e Served, other *Router, yield func(Move) bool) bool {
	for _, h := range hostnamesIn(e, other) {
		if *r.memo.lookups > maxWork {
			yield(Move{From: e, Unsearched: true})
			return false
		}
		start := r.memo.work
		q, d := r.served(e, h)
		*r.memo.lookups += 1 + r.memo.work - start
		m := Move{From: e, Request: q, before: r, after: other}
		if q != nil && other != nil {
			m.To = other.Route(q)
		}
		if d != missing && !yield(m) {
			return false
		}
	}
	return true
}

// served returns a request for a hostname that is served by a match.
func (r *Router) served(e Served, hostname string) (*Request, existence) {
	return findRequest(e, e, r.memo, func(q *Request) (at *Router, by, of Served) {
		q.setHost(hostname)
		return r, r.Route(q), e
	})
}

// maxRequestWork is the work after which no more requests are tried for two matches.
const maxRequestWork = 1 << 18

// findRequest returns a request that meets two matches and goes to them, nil if there is none.
// route says by which of some routers it goes where instead of to one of them.
//
// The first request meets as few other matches as possible. It decides, but for regular
// expressions: of their texts, those are looked for that do not meet what took the ones
// before.
func findRequest(e, f Served, memo *routerMemo, route func(q *Request) (at *Router, by, of Served)) (*Request, existence) {
	most := memo.work + maxRequestWork
	varies := e.match.regex || f.match.regex || e.match.grpc || f.match.grpc
	var find func(unmet conditionsAt) (*Request, existence)
	find = func(unmet conditionsAt) (*Request, existence) {
		if memo.work > most {
			return nil, unsearched
		}
		q, d := witness(e, f, unmet, memo)
		if q == nil {
			return nil, d
		}
		at, by, of := route(q)
		if by.Same(of) {
			return q, exists
		}
		if by.match == nil || !varies {
			return nil, missing
		}
		ways, _ := by.match.avoidable(e.match, f.match, q)
		if slices.ContainsFunc(ways, unmet.has) {
			return nil, unsearched // a gRPC call meets a condition on its path in another way
		}
		for _, m := range at.ahead(by, of) {
			memo.work++
			switch ways, takes := m.avoidable(e.match, f.match, q); {
			case takes && len(ways) == 0:
				return nil, missing // it takes all of them
			case takes && len(ways) == 1 && !unmet.has(ways[0]):
				unmet = unmet.with(ways[0])
			}
		}
		d = missing
		for _, p := range ways {
			found, more := find(unmet.with(p))
			if found != nil {
				return found, exists
			}
			d = max(d, more)
		}
		return nil, d
	}
	return find(nil)
}

// conditionsAt are conditions on several parts of requests.
type conditionsAt map[conditionAt][]condition

// with returns the conditions with one more.
func (c conditionsAt) with(one matchPart) conditionsAt {
	out := maps.Clone(c)
	if out == nil {
		out = make(conditionsAt)
	}
	out[one.conditionAt] = append(slices.Clip(out[one.conditionAt]), one.condition)
	return out
}

func (c conditionsAt) has(one matchPart) bool {
	return slices.ContainsFunc(c[one.conditionAt], func(o condition) bool { return o.op == one.op && o.value == one.value })
}

// avoidable returns the conditions of a match that some requests do not meet although they
// meet two others, since these have regular expressions there. takes is set if a request that
// meets the two, whatever its texts there, meets all other conditions of the match.
func (m *routeMatch) avoidable(e, f *routeMatch, q *Request) (out []matchPart, takes bool) {
	if m.verb != "" && m.verb != q.Method || m.grpc && !q.GRPC {
		return nil, false
	}
	others := slices.Concat(e.parts(), f.parts())
	for _, p := range m.parts() {
		regex, covered := false, false
		for _, o := range others {
			if o.conditionAt == p.conditionAt {
				regex, covered = regex || o.op == matchesRegex, covered || p.covers(o.condition)
			}
		}
		switch {
		case covered:
		case regex:
			out = append(out, p)
		case !q.meets(p):
			return nil, false
		}
	}
	return out, true
}

// meets reports whether the request meets a condition of a match.
func (q *Request) meets(p matchPart) bool {
	value, ok := q.Path, true
	switch p.part {
	case partHeader:
		value, ok = q.Header(p.name)
	case partParam:
		value, ok = q.Param(p.name)
	case partService, partMethod:
		return true // they are on the path, too
	}
	return ok && p.meets(value)
}

// parts returns the conditions of the match. That of a gRPC method is also one on the path.
func (m *routeMatch) parts() []matchPart {
	out := m.conditions()
	out[0].condition = m.asPath()
	return slices.DeleteFunc(out, func(p matchPart) bool { return p.op == anyValue })
}

// asPath returns the condition on the path, also of a gRPC method.
func (m *routeMatch) asPath() condition {
	if !m.grpc {
		return m.path
	}
	segment := func(c condition) string {
		switch c.op {
		case exactly:
			return regexp.QuoteMeta(c.value)
		case matchesRegex:
			return "(?:" + c.value + ")"
		default:
			return "[^/]+"
		}
	}
	return regexCondition("/" + segment(m.service) + "/" + segment(m.method))
}

// witness returns the request that meets two matches, none of some conditions, and as few
// other matches as possible, or nil.
func witness(e, f Served, unmet conditionsAt, memo *routerMemo) (q *Request, d existence) {
	hostname, at := narrower(e, f).Hostname, e.Listener
	if at.Listener.transport() == TransportTCP {
		at = f.Listener // which may read more of the connection
	}
	q = at.request(hostname)
	if q.Transport == TransportTCP || q.Transport == TransportUDP || e.Listener.Service == nil && !e.Route.readsRequests() && !f.Route.readsRequests() {
		return q, exists // connections
	}
	if d = q.meetBoth(e.match, f.match, unmet, memo); d != exists {
		return nil, d
	}
	return q, exists
}

// meetBoth sets a request's path, method, headers and parameters to those that meet two
// matches, none of some conditions, and as few other matches as possible.
func (q *Request) meetBoth(a, b *routeMatch, unmet conditionsAt, memo *routerMemo) (d existence) {
	if a.verb != "" && b.verb != "" && a.verb != b.verb {
		return missing
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
	if d = q.meetPaths(a, b, unmet, memo); d != exists {
		return d
	}
	if q.Headers, d = meetNamed(a.headers, b.headers, partHeader, unmet, memo); d != exists {
		return d
	}
	q.Query, d = meetNamed(a.params, b.params, partParam, unmet, memo)
	return d
}

// meetPaths sets the path to one that meets the conditions of both matches.
func (q *Request) meetPaths(a, b *routeMatch, unmet conditionsAt, memo *routerMemo) (d existence) {
	onPath := unmet[conditionAt{part: partPath}]
	if !a.grpc && !b.grpc {
		if q.Path, d = meet(a.path, b.path, onPath, partPath, memo); q.Path == "" {
			q.Path = "/" + freeSegment
		}
		return d
	}
	q.GRPC = true
	var service, method string
	if service, d = meet(a.service, b.service, unmet[conditionAt{part: partService}], partService, memo); d != exists {
		return d
	}
	if method, d = meet(a.method, b.method, unmet[conditionAt{part: partMethod}], partMethod, memo); d != exists {
		return d
	}
	service, method = cmp.Or(service, freeSegment), cmp.Or(method, freeSegment)
	paths := []string{"/" + service + "/" + method}
	// of an HTTPRoute's match, the path decides which of the two are free
	for _, m := range []*routeMatch{a, b} {
		if m.path.op != anyValue {
			paths = append(paths, m.path.value, m.path.value+"/"+method, m.path.value+"/"+service+"/"+method)
		}
	}
	takes := func(path string) bool {
		q.Path = path
		return a.takesPath(q) && b.takesPath(q) && !slices.ContainsFunc(onPath, func(c condition) bool { return c.meets(path) })
	}
	if slices.ContainsFunc(paths, takes) {
		return exists
	}
	path, d := meet(a.asPath(), b.asPath(), onPath, partPath, memo)
	if d == exists && !takes(path) {
		return unsearched
	}
	return d
}

// meetNamed returns headers or parameters that meet the conditions of two matches.
func meetNamed(a, b namedConditions, part string, unmet conditionsAt, memo *routerMemo) (out []Field, d existence) {
	for i, c := range slices.Concat(a, b) {
		if i >= len(a) && a.on(c.name).op != anyValue {
			continue // it was met
		}
		value, d := meet(a.on(c.name), b.on(c.name), unmet[conditionAt{part, c.name}], part, memo)
		if d != exists {
			return nil, d
		}
		out = append(out, Field{c.name, value})
	}
	return out, exists
}

// meet returns a value that meets two conditions and none of others, and as few more as
// possible. Only of regular expressions it may not be known.
func meet(a, b condition, unmet []condition, part string, memo *routerMemo) (value string, d existence) {
	if a.op > b.op {
		a, b = b, a
	}
	free := func(value string) bool {
		return !slices.ContainsFunc(unmet, func(c condition) bool { return c.meets(value) })
	}
	switch {
	case b.op == anyValue:
		return "", exists
	case b.op == exactly:
		return b.value, existsIf(a.meets(b.value) && free(b.value))
	case a.op == exactly:
		if d = existsIf(b.meets(a.value) && free(a.value)); d == missing && b.unread {
			d = unread
		}
		return a.value, d
	case a.op == underPrefix && b.op == underPrefix && len(a.value) > len(b.value):
		a, b = b, a
	}
	if b.op == underPrefix {
		value = b.value + "/" + freeSegment
		return value, existsIf(a.meets(b.value) && free(value))
	}
	if value = a.value + "/" + freeSegment; a.op == underPrefix && b.meets(value) && free(value) {
		return value, exists
	}
	return memo.commonText([]condition{a, b}, unmet, part)
}

// narrower returns the one of two matches that has the more specific hostname.
func narrower(e, f Served) Served {
	if compareHostnames(f.Hostname, e.Hostname) < 0 {
		return f
	}
	return e
}

// hostnamesIn returns the hostname of a match, and those of listeners of some routers at its
// port that are more specific. A router may be nil.
func hostnamesIn(e Served, routers ...*Router) []string {
	out, seen := []string{e.Hostname}, make(map[string]bool)
	for _, r := range routers {
		if r == nil {
			continue
		}
		for i := range r.listeners {
			l := r.listeners[i].Listener
			if l.Hostname != e.Hostname && l.SamePort(e.Listener.Listener) && slices.Contains(hostnamesFor(l.Hostname), e.Hostname) && !seen[l.Hostname] {
				out, seen[l.Hostname] = append(out, l.Hostname), true
			}
		}
	}
	return out
}

// Plain returns a request that two routers serve as another one, with what a person would
// write in place of values that no match names: "any-host", say, or "*" if some match
// names that.
func Plain(q *Request, before, after *Router) *Request {
	from, to := before.Route(q), after.Route(q)
	replace := func(change func(*Request)) bool {
		other := *q
		change(&other)
		same := before.Route(&other).Same(from) && after.Route(&other).Same(to)
		if same {
			q = &other
		}
		return same
	}
	replace(func(q *Request) { q.Method = strings.Replace(q.Method, freeVerb, "GET", 1) })
	replace(func(q *Request) { q.Path = strings.TrimSuffix(q.Path, freeSegment) })
	replace(func(q *Request) { q.Path = cmp.Or(strings.TrimSuffix(q.Path, "/"), "/") })
	for _, text := range []struct{ free, shown string }{{freeLabel, "any-host"}, {freeSegment, "any-path"}} {
		show := func(q *Request, as string) {
			q.Host = strings.ReplaceAll(q.Host, text.free, as)
			q.Path = strings.ReplaceAll(q.Path, text.free, as)
		}
		if !replace(func(q *Request) { show(q, text.shown) }) {
			other := *q
			show(&other, "*")
			q = &other
		}
	}
	return q.withoutFreeTexts()
}
