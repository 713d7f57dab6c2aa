package gateway

import (
	"cmp"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Move is a request that is served by one rule before a change and by another after it.
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

// NewMove returns where a request goes before and after a change.
func NewMove(q *Request, before, after *Router) Move {
	return Move{From: before.Route(q), To: after.Route(q), Request: q, before: before, after: after}
}

// Shown returns the request for people, as Plain does: it need not move. It is nil if there is
// none.
func (m *Move) Shown() *Request {
	if m.Request == nil {
		return nil
	}
	return Plain(m.Request, m.before, m.after)
}

// entry is a match of a route at a listener, on one hostname: the more specific one of the
// listener's and of the route's.
type entry struct {
	listener *ListenerMatch
	route    *Route
	match    *routeMatch
	hostname string
}

func (e entry) served() Served {
	return Served{Listener: e.listener, Route: e.route, Rule: e.match.rule, Match: e.match.match, Hostname: e.hostname, match: e.match}
}

// Moves yields requests that a change of routes or listeners moves: for each pair of rules
// between which requests move, at least one. changed are the routes of which a match, a
// hostname or a listener may differ, before and after the change; they are the same
// objects where only the listeners change.
//
// A request that moves was or will be served by a match that is changed: one that the
// other router does not have as it is. The other match comes after it by precedence, or
// is changed, too. So for each changed match, those are looked at that can serve requests
// for its hostname in the other router, in the order of precedence, up to one that takes
// all of its requests. At a listener that the change adds or removes, requests for more specific
// hostnames of other routes come in, too. For two matches, one request decides: the one that meets both and
// as few others as possible. Where that is served by another rule, so are all that meet
// both.
//
// limits, which may be zero, say which moves matter and for how long to look for them.
func Moves(before, after *Router, changedBefore, changedAfter []*Route, limits MoveLimits) iter.Seq[Move] {
	return func(yield func(Move) bool) {
		s := newSearch(before, after, limits, yield)
		defer s.end()
		for _, flip := range []bool{false, true} {
			own, other := s.sides(flip)
			unchanged := own.unchangedListeners(other)
			changed, others := changedBefore, changedAfter
			if flip {
				changed, others = changedAfter, changedBefore
			}
			for _, route := range changed {
				for e := range s.changedEntries(route, others, unchanged, flip) {
					if !s.moves(e, flip, unchanged[e.listener] == nil) {
						return
					}
				}
			}
		}
	}
}

// MoveLimits limit a search for moves. The zero value limits nothing.
type MoveLimits struct {
	// Policies returns what moves of requests from and to a rule depend on, and AtStake
	// whether a move between two such values matters. Matches of which none does are
	// not looked at.
	Policies func(s Served, after bool) any
	AtStake  func(from, to any) bool
	// Known says whether the moves between two rules are known already.
	Known func(from, to Served) bool
	// Alive says whether to go on.
	Alive func() bool
	// Steps, if set, is added the number of matches that were looked at.
	Steps *int
	// Work, if set, is added the work of the search: all searches that share it may do
	// MaxWork together.
	Work *int
	// MaxWork is the work after which no more requests are looked for; 0 for the usual one.
	MaxWork int
}

// SameListener reports whether the request of a move comes in by one listener before and
// after the change: one of the same name, or of the same port and hostname.
func (m *Move) SameListener() bool {
	return m.From.Listener.Same(m.To.Listener) || m.From.Listener.sameRequests(m.To.Listener)
}

// changedEntries yields the matches of a route, after the change or before it, that the
// other router does not have as they are: of the same rule, age and conditions, on the same
// hostname of the same listener. others are the routes of the other router in which a
// version of the route is looked up.
//
// A request between two matches that both routers have does not move: the same one
// precedes the other in both.
func (s *search) changedEntries(route *Route, others []*Route, unchanged map[*ListenerMatch]*ListenerMatch, after bool) iter.Seq[entry] {
	r, o := s.sides(after)
	var other *Route
	if i := slices.IndexFunc(others, func(o *Route) bool { return o.Ref() == route.Ref() }); i >= 0 {
		other = others[i]
	}
	same := sameMatches(route, other, after)
	return func(yield func(entry) bool) {
		for i := range r.listeners {
			l := &r.listeners[i]
			var hostnames []string
			is := unchanged[l]
			if is != nil && other != nil && o.attached(is, other) {
				hostnames = is.hostnames(other)
			}
			ok := r.yieldEntries(route, l, func(e entry) bool {
				return slices.Contains(hostnames, e.hostname) && same(e.match) && s.sameStake(e, is, other, after) || yield(e)
			})
			if !ok {
				return
			}
		}
	}
}

// sameStake reports whether nothing is at stake between a match and the same one of
// another router, at a listener that may have another name.
func (s *search) sameStake(e entry, l *ListenerMatch, route *Route, after bool) bool {
	there := Served{Listener: l, Route: route, Rule: e.match.rule}
	return l.Same(e.listener) || s.limits.AtStake != nil && !s.matters(e, s.policies(there, !after), after)
}

// ListenersGone returns the gateways and listener sets of which another router does not
// have a listener as it is here, each once.
func (r *Router) ListenersGone(other *Router) []api.Ref {
	var out []api.Ref
	unchanged := r.unchangedListeners(other)
	for i := range r.listeners {
		l := &r.listeners[i]
		if o, parent := unchanged[l], l.Parent(); (o == nil || !o.Same(l)) && !slices.Contains(out, parent) {
			out = append(out, parent)
		}
	}
	return out
}

// ListenersNew returns the listeners that take connections which none of the same object does in
// another router.
func (r *Router) ListenersNew(other *Router) []ListenerMatch {
	taken := other.places()
	var out []ListenerMatch
	for i := range r.listeners {
		if !taken[r.listeners[i].at()] {
			out = append(out, r.listeners[i])
		}
	}
	return out
}

// sameMatches returns which matches of a route, after the change or before it, another
// version of it has in the same place of the same rule. There are none if there is no other
// version. A rule that the change pairs with another one is not the same, whatever its place:
// its requests leave its path.
func sameMatches(route, other *Route, after bool) func(*routeMatch) bool {
	if other == nil || route != other && other.Created != route.Created {
		return func(*routeMatch) bool { return false }
	}
	if sameRules(route, other) {
		return func(*routeMatch) bool { return true }
	}
	old, edited := route, other
	if after {
		old, edited = other, route
	}
	before := MatchRules(old, edited)
	same := make(map[*routeMatch]bool)
	matches := route.routeMatches()
	for rule := range min(len(route.Rules), len(other.Rules)) {
		if before[rule] != rule || route.Rules[rule].Name != other.Rules[rule].Name {
			continue
		}
		is, was := route.matchesOf(rule), other.matchesOf(rule)
		for k := range matches {
			if m := &matches[k]; m.rule == rule && m.match < min(len(was), len(is)) && was[m.match] == is[m.match] {
				same[m] = true
			}
		}
	}
	return func(m *routeMatch) bool { return same[m] }
}

// unchangedListeners returns the listeners that take the same connections of another
// router as a listener of the same object there, and admit the same routes, whatever their
// names. They are by the router's own.
func (r *Router) unchangedListeners(o *Router) map[*ListenerMatch]*ListenerMatch {
	others := make(map[listenerKey]*ListenerMatch)
	for i := range o.listeners {
		others[o.listeners[i].key()] = &o.listeners[i]
	}
	out := make(map[*ListenerMatch]*ListenerMatch)
	for i := range r.listeners {
		l := &r.listeners[i]
		if other := others[l.key()]; other != nil && l.equal(other) {
			out[l] = other
		}
	}
	return out
}

// equal reports whether two listeners of an object have the same content.
func (m *ListenerMatch) equal(o *ListenerMatch) bool {
	if m.Parent() != o.Parent() || m.Client != o.Client {
		return false
	}
	a, b := *m.Listener, *o.Listener
	a.Name, b.Name = "", ""
	return m.Listener == o.Listener || reflect.DeepEqual(a, b)
}

// request returns a request that comes in by the listener, for a hostname.
func (m *ListenerMatch) request(hostname string) *Request {
	q := &Request{Transport: m.Listener.transport(), Port: m.Listener.Port, Client: m.Client}
	q.setHost(hostname)
	return q
}

// setHost sets the host to one that a hostname matches, and as few others as possible.
func (q *Request) setHost(hostname string) {
	switch {
	case q.Transport == TransportTCP || q.Transport == TransportUDP:
	case hostname == "":
		q.Host = freeLabel
	case hostname[0] == '*':
		q.Host = freeLabel + hostname[1:]
	default:
		q.Host = hostname
	}
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

var freeTexts = regexp.MustCompile(freeText + "[0-9a-f]{16}")

// withoutFreeTexts returns the request with "*" in place of what stands for regular
// expressions that cannot be read.
func (q *Request) withoutFreeTexts() *Request {
	shown := func(fields []Field) []Field {
		out := slices.Clone(fields)
		for i := range out {
			out[i].Value = freeTexts.ReplaceAllString(out[i].Value, "*")
		}
		return out
	}
	out := *q
	out.Path, out.Headers, out.Query = freeTexts.ReplaceAllString(q.Path, "*"), shown(q.Headers), shown(q.Query)
	return &out
}

// Neighbors yields the routes on the hostnames of a route, or on less specific ones, at its
// listeners and at others of their ports; it may yield one several times.
func (r *Router) Neighbors(route *Route) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for l := range r.ListenersOf(route) {
			for _, hostname := range l.hostnames(route) {
				chain := hostnamesFor(hostname)
				for i := range r.listeners {
					o := &r.listeners[i]
					if !o.Listener.SamePort(l.Listener) || !slices.Contains(chain, o.Listener.Hostname) {
						continue
					}
					for _, h := range chain {
						for n := range r.routes.AllRoutesAt(o.Parent(), h) {
							if !yield(n) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// ListenersAfter yields for each hostname whose requests come in by a listener, and that
// may go to another one, the listener of another router by which they come in there.
func (r *Router) ListenersAfter(at *ListenerMatch, other *Router) iter.Seq[*ListenerMatch] {
	return func(yield func(l *ListenerMatch) bool) {
		e := entry{listener: at, hostname: at.Listener.Hostname}
		for _, h := range hostnamesIn(e, other) {
			q := at.request(h)
			if q.Transport == TransportTCP {
				q.Transport = TransportHTTP // what is sent by the connection may have any host
				q.setHost(h)
			}
			from, to := r.listenersFor(q), other.listenersFor(q)
			if len(from) > 0 && from[0].Same(at) && len(to) > 0 && !yield(to[0]) {
				return
			}
		}
	}
}

// hostnamesIn returns the hostname of a match, and those of listeners of some routers at its
// port that are more specific. A router may be nil.
func hostnamesIn(e entry, routers ...*Router) []string {
	out, seen := []string{e.hostname}, make(map[string]bool)
	for _, r := range routers {
		if r == nil {
			continue
		}
		for i := range r.listeners {
			l := r.listeners[i].Listener
			if l.Hostname != e.hostname && l.SamePort(e.listener.Listener) && slices.Contains(hostnamesFor(l.Hostname), e.hostname) && !seen[l.Hostname] {
				out, seen[l.Hostname] = append(out, l.Hostname), true
			}
		}
	}
	return out
}

// hostnames returns the hostnames by which requests reach a route at the listener.
func (m *ListenerMatch) hostnames(route *Route) []string {
	if m.Service != nil {
		return []string{m.Listener.Hostname} // those of routes mean nothing in a mesh
	}
	return Path{Listener: m.Listener, Route: route}.Hosts()
}

// entriesAt yields the matches of a route at a listener that is known by its name.
func (r *Router) entriesAt(route *Route, at *ListenerMatch) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i := range r.listeners {
			if l := &r.listeners[i]; l.Same(at) && !r.yieldEntries(route, l, yield) {
				return
			}
		}
	}
}

func (r *Router) yieldEntries(route *Route, l *ListenerMatch, yield func(entry) bool) bool {
	if !r.attached(l, route) {
		return true
	}
	for _, h := range l.hostnames(route) {
		matches := route.routeMatches()
		for k := range matches {
			if !yield(entry{l, route, &matches[k], h}) {
				return false
			}
		}
	}
	return true
}
