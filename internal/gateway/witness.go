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
	beside        []*routeMatch // that the request meets as well, whatever serves it
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
	return findRequest(e, e, nil, r.memo, func(q *Request) (by *routeMatch, ok bool) {
		q.setHost(hostname)
		s := r.Route(q)
		return s.match, s.Same(e)
	})
}

// maxRefinements is how many requests are tried for two matches.
const maxRefinements = 32

// findRequest returns a request that meets two matches, and some beside them, and is wanted, nil
// if there is none. wanted names the match that takes it instead.
//
// The first request meets as few other matches as possible. It decides, but for regular
// expressions: of their texts, those are looked for that do not meet what took the ones
// before.
func findRequest(e, f Served, beside []*routeMatch, memo *routerMemo, wanted func(q *Request) (by *routeMatch, ok bool)) (*Request, existence) {
	left, met := maxRefinements, append([]*routeMatch{e.match, f.match}, beside...)
	var find func(unmet conditionsAt) (*Request, existence)
	find = func(unmet conditionsAt) (*Request, existence) {
		if left--; left < 0 {
			return nil, unsearched
		}
		q, d := witness(e, f, met, unmet, memo)
		if q == nil {
			return nil, d
		}
		by, ok := wanted(q)
		if ok {
			return q, exists
		}
		d = missing
		for at, c := range by.avoidable(met) {
			found, more := find(unmet.with(at, c))
			if found != nil {
				return found, exists
			}
			d = max(d, more)
		}
		return nil, d
	}
	return find(nil)
}

// maxBesideWork bounds the work of Beside, and besideCost is that of each request beside its
// search: the readings are asked where it goes.
const (
	maxBesideWork = 1 << 19
	besideCost    = 1 << 10
)

// Beside yields requests that move from one rule to another as that of the move does, and that
// also meet a match which precedes what serves the request of the move by two other routers:
// these, which are those of another reading, may have them elsewhere. work is what that costs,
// and once it is too much, none is looked for.
func (m *Move) Beside(before, after *Router, work *int) iter.Seq[Move] {
	return func(yield func(Move) bool) {
		if m.Request.Path == "" {
			return // a connection
		}
		for _, r := range []*Router{before, after} {
			by := r.Route(m.Request)
			for _, o := range r.competitors(r.indexFor(m.Request), m.From.match) {
				if *work++; *work > maxBesideWork {
					return
				}
				if r.compare(o.Served, by) >= 0 || m.before.takesFrom(m.From, o.match, m.Request) || m.after.takesFrom(m.To, o.match, m.Request) {
					continue
				}
				start := m.before.memo.work
				other := m.meeting(o.match)
				*work += besideCost + m.before.memo.work - start
				if other.Request != nil && !yield(other) {
					return
				}
			}
		}
	}
}

// takesFrom reports whether a match serves all requests for the host of one that meet it and
// another match.
func (r *Router) takesFrom(s Served, m *routeMatch, q *Request) bool {
	there := r.indexFor(q).find(m)
	return there != nil && r.compare(there.Served, s) < 0
}

// meeting returns a move between the same rules, for the same host, of a request that meets one
// more match. It has no request if there is none.
func (m *Move) meeting(also *routeMatch) (out Move) {
	beside := append(slices.Clip(m.beside), also)
	q, _ := findRequest(m.From, m.To, beside, m.before.memo, func(q *Request) (by *routeMatch, ok bool) {
		q.Host = m.Request.Host
		out = newMove(q, m.before, m.after)
		return out.takenBy(m.From, m.To)
	})
	out.Request, out.beside = q, beside
	return out
}

// takenBy returns the match that takes the request of the move from two rules, and whether none does.
func (m *Move) takenBy(from, to Served) (by *routeMatch, ok bool) {
	if !m.From.Same(from) {
		return m.From.match, false
	}
	return m.To.match, m.To.Same(to)
}

// conditionsAt are conditions on several parts of requests.
type conditionsAt map[conditionAt][]condition

// with returns the conditions with one more.
func (c conditionsAt) with(at conditionAt, one condition) conditionsAt {
	out := maps.Clone(c)
	if out == nil {
		out = make(conditionsAt)
	}
	out[at] = append(slices.Clip(out[at]), one)
	return out
}

// avoidable yields the conditions of a match that some requests do not meet although they
// meet others, since these have regular expressions there.
func (m *routeMatch) avoidable(met []*routeMatch) iter.Seq2[conditionAt, condition] {
	return func(yield func(conditionAt, condition) bool) {
		if m == nil {
			return
		}
		var others []matchPart
		for _, o := range met {
			others = append(others, o.parts()...)
		}
		for _, p := range m.parts() {
			regex, covered := false, false
			for _, o := range others {
				if o.conditionAt == p.conditionAt {
					regex, covered = regex || o.op == matchesRegex, covered || p.covers(o.condition)
				}
			}
			if regex && !covered && !yield(p.conditionAt, p.condition) {
				return
			}
		}
	}
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

// witness returns the request that is served by one of two rules and then the other, if it meets
// some matches, none of some conditions, and as few other matches as possible, or nil.
func witness(e, f Served, met []*routeMatch, unmet conditionsAt, memo *routerMemo) (q *Request, d existence) {
	hostname, at := narrower(e, f).Hostname, e.Listener
	if at.Listener.transport() == TransportTCP {
		at = f.Listener // which may read more of the connection
	}
	q = at.request(hostname)
	if q.Transport == TransportTCP || q.Transport == TransportUDP || e.Listener.Service == nil && !e.Route.readsRequests() && !f.Route.readsRequests() {
		return q, exists // connections
	}
	if d = q.meetAll(met, unmet, memo); d != exists {
		return nil, d
	}
	return q, exists
}

// meetAll sets a request's path, method, headers and parameters to those that meet some
// matches, none of some conditions, and as few other matches as possible.
func (q *Request) meetAll(all []*routeMatch, unmet conditionsAt, memo *routerMemo) (d existence) {
	q.Method = freeVerb
	var headers, params []namedConditions
	for _, m := range all {
		q.GRPC = q.GRPC || m.grpc
		switch {
		case q.Method == freeVerb && m.verb != "":
			q.Method = m.verb
		case m.verb != "" && m.verb != q.Method:
			return missing
		}
		headers, params = append(headers, m.headers), append(params, m.params)
	}
	if q.GRPC && q.Method == freeVerb {
		q.Method = "POST"
	}
	if d = q.meetPaths(all, unmet, memo); d != exists {
		return d
	}
	if q.Headers, d = meetNamed(headers, partHeader, unmet, memo); d != exists {
		return d
	}
	q.Query, d = meetNamed(params, partParam, unmet, memo)
	return d
}

// meetPaths sets the path to one that meets the conditions of all matches.
func (q *Request) meetPaths(all []*routeMatch, unmet conditionsAt, memo *routerMemo) (d existence) {
	onPath := unmet[conditionAt{part: partPath}]
	meetPart := func(part string, of func(m *routeMatch) condition) (string, existence) {
		var on []condition
		for _, m := range all {
			on = append(on, of(m))
		}
		return meet(on, unmet[conditionAt{part: part}], part, memo)
	}
	if !q.GRPC {
		if q.Path, d = meetPart(partPath, func(m *routeMatch) condition { return m.path }); q.Path == "" {
			q.Path = "/" + freeSegment
		}
		return d
	}
	var service, method string
	if service, d = meetPart(partService, func(m *routeMatch) condition { return m.service }); d != exists {
		return d
	}
	if method, d = meetPart(partMethod, func(m *routeMatch) condition { return m.method }); d != exists {
		return d
	}
	service, method = cmp.Or(service, freeSegment), cmp.Or(method, freeSegment)
	paths := []string{"/" + service + "/" + method}
	// of an HTTPRoute's match, the path decides which of the two are free
	for _, m := range all {
		if m.path.op != anyValue {
			paths = append(paths, m.path.value, m.path.value+"/"+method, m.path.value+"/"+service+"/"+method)
		}
	}
	takes := func(path string) bool {
		q.Path = path
		return !slices.ContainsFunc(all, func(m *routeMatch) bool { return !m.takesPath(q) }) &&
			!slices.ContainsFunc(onPath, func(c condition) bool { return c.meets(path) })
	}
	if slices.ContainsFunc(paths, takes) {
		return exists
	}
	path, d := meetPart(partPath, (*routeMatch).asPath)
	if d == exists && !takes(path) {
		return unsearched
	}
	return d
}

// meetNamed returns headers or parameters that meet the conditions of some matches.
func meetNamed(all []namedConditions, part string, unmet conditionsAt, memo *routerMemo) (out []Field, d existence) {
	for _, c := range slices.Concat(all...) {
		if slices.ContainsFunc(out, func(f Field) bool { return f.Name == c.name }) {
			continue // it was met
		}
		var on []condition
		for _, named := range all {
			on = append(on, named.on(c.name))
		}
		value, d := meet(on, unmet[conditionAt{part, c.name}], part, memo)
		if d != exists {
			return nil, d
		}
		out = append(out, Field{c.name, value})
	}
	return out, exists
}

// meet returns a value that meets all of some conditions and none of others, and as few more as
// possible. Only of regular expressions it may not be known.
func meet(all, unmet []condition, part string, memo *routerMemo) (value string, d existence) {
	meets := func(value string) bool {
		return !slices.ContainsFunc(all, func(c condition) bool { return !c.meets(value) }) &&
			!slices.ContainsFunc(unmet, func(c condition) bool { return c.meets(value) })
	}
	all = slices.DeleteFunc(all, func(c condition) bool { return c.op == anyValue })
	if len(all) == 0 {
		return "", exists
	}
	first := slices.MinFunc(all, func(a, b condition) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(len(b.value), len(a.value)))
	})
	switch value = first.value + "/" + freeSegment; {
	case first.op == exactly:
		if d = existsIf(meets(first.value)); d == missing && slices.ContainsFunc(all, func(c condition) bool { return c.unread }) {
			d = unread
		}
		return first.value, d
	case first.op == underPrefix && meets(value):
		return value, exists
	case !slices.ContainsFunc(all, func(c condition) bool { return c.op == matchesRegex }):
		return "", missing
	default:
		return memo.commonText(all, unmet, part)
	}
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
