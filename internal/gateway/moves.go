package gateway

import (
	"cmp"
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Shown returns the request for people, as Plain does: it need not move. There must be one.
func (m *Move) Shown() *Request { return Plain(m.Request, m.before, m.after) }

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
		defer func() { *s.limits.Work = s.work() }()
		for _, flip := range []bool{false, true} {
			own, other := s.sides(flip)
			unchanged := own.unchangedListeners(other)
			changed, others := changedBefore, changedAfter
			if flip {
				changed, others = changedAfter, changedBefore
			}
			for _, route := range changed {
				for e := range s.changedEntries(route, others, unchanged, flip) {
					if !s.moves(e, flip, unchanged[e.Listener] == nil) {
						return
					}
				}
			}
		}
	}
}

// NothingMoves reports whether it is found without a search that a change moves no requests, under
// any reading: it changes one route and no listener, the route keeps its rules, and no other route
// competes with either version of it. That is the usual case. The other routes of the first router
// must be in the second one.
func NothingMoves(before, after *Router, changedBefore, changedAfter []*Route) bool {
	if len(changedBefore) > 1 || len(changedAfter) > 1 || !slices.Equal(before.listeners, after.listeners) ||
		len(before.listeners) > 0 && before.listeners[0].Service != nil {
		return false
	}
	was, is := cmp.Or(changedBefore...), cmp.Or(changedAfter...)
	if was != nil && is != nil && !sameButHostnames(before, after, was, is) {
		return false
	}
	if !after.areAlone(slices.Concat(changedAfter, changedBefore), is) {
		return false
	}
	after.memo.solitary = is
	return true
}

// sameButHostnames reports whether two versions of a route, whose hostnames are exact, are on
// the same listeners with the same rules.
func sameButHostnames(before, after *Router, was, is *Route) bool {
	return was.Ref() == is.Ref() && was.Created == is.Created && was.hasExactHostnames() && is.hasExactHostnames() && sameRules(was, is) &&
		!slices.ContainsFunc(before.listeners, func(l ListenerMatch) bool { return before.attached(&l, was) != after.attached(&l, is) })
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
func (s *search) changedEntries(route *Route, others []*Route, unchanged map[*ListenerMatch]*ListenerMatch, after bool) iter.Seq[Served] {
	r, o := s.sides(after)
	var other *Route
	if i := slices.IndexFunc(others, func(o *Route) bool { return o.Ref() == route.Ref() }); i >= 0 {
		other = others[i]
	}
	same := sameMatches(route, other, after)
	return func(yield func(Served) bool) {
		for i := range r.listeners {
			l := &r.listeners[i]
			var hostnames []string
			is := unchanged[l]
			if is != nil && other != nil && o.attached(is, other) && (!r.reading.OwnHostnames || slices.Equal(route.Hostnames, other.Hostnames)) {
				hostnames = is.hostnames(other)
			}
			ok := r.yieldEntries(route, l, func(e Served) bool {
				return slices.Contains(hostnames, e.Hostname) && same(e.match) && s.sameStake(e, is, other, after) || yield(e)
			})
			if !ok {
				return
			}
		}
	}
}

// sameStake reports whether nothing is at stake between a match and the same one of
// another router, at a listener that may have another name.
func (s *search) sameStake(e Served, l *ListenerMatch, route *Route, after bool) bool {
	there := Served{Listener: l, Route: route, Rule: e.match.rule}
	return l.Same(e.Listener) || s.limits.AtStake != nil && !s.matters(e, s.policies(there, !after), after)
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
		is, was := matchesOf(route, rule), matchesOf(other, rule)
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

// ListenersAfter yields for each hostname whose requests come in by a listener, and that
// may go to another one, the listener of another router by which they come in there.
func (r *Router) ListenersAfter(at *ListenerMatch, other *Router) iter.Seq[*ListenerMatch] {
	return func(yield func(l *ListenerMatch) bool) {
		e := Served{Listener: at, Hostname: at.Listener.Hostname}
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

// maxOtherKind is the most matches of routes, by hostname and listener, that OtherKind returns.
const maxOtherKind = 1 << 12

// OtherKind returns the routes beside some that a write changes for which those of another kind
// count in another router, on a hostname of theirs: as many as can be searched at little cost.
// routes are those of a parent.
func (r *Router) OtherKind(o *Router, changed []*Route, routes func(parent api.Ref) iter.Seq[*Route]) []*Route {
	var out []*Route
	unchanged, work := r.unchangedListeners(o), 0
	for i := range r.listeners {
		l := &r.listeners[i]
		is := unchanged[l]
		isOldest := func(c *Route) bool {
			return slices.ContainsFunc(l.hostnames(c), func(h string) bool {
				return r.oldestFor(l, hostnamesFor(h)) == c || o.oldestFor(is, hostnamesFor(h)) == c
			})
		}
		if is == nil || !slices.ContainsFunc(changed, isOldest) {
			continue
		}
		for n := range routes(l.Parent()) {
			if !r.attached(l, n) || slices.Contains(changed, n) || slices.Contains(out, n) {
				continue
			}
			hostnames := l.hostnames(n)
			work += len(hostnames)
			if slices.ContainsFunc(hostnames, func(h string) bool {
				return r.kindFor(l, hostnamesFor(h)) != o.kindFor(is, hostnamesFor(h))
			}) {
				out, work = append(out, n), work+len(hostnames)*len(r.listeners)*len(n.routeMatches())
			}
			if work > maxOtherKind {
				return out
			}
		}
	}
	return out
}
