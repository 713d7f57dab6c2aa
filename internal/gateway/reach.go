package gateway

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Reach is whether requests reach a rule of a route at a listener.
type Reach struct {
	// Reached is set if some request does, or if that cannot be decided.
	Reached bool
	// Isolated is set if it is reached only where listeners share the requests of their
	// port: not by implementations that isolate listeners.
	Isolated bool
	// Elsewhere is set if requests reach the rule, but by another listener.
	Elsewhere bool
	// Request is one that the rule's matches select and that By serves in its place; nil
	// if the rule is reached, and not only where listeners are not isolated. By has no
	// route if nothing serves it. First is the criterion by which By precedes the rule.
	Request *Request
	By      Served
	First   api.Precedence
	// Conflict is the listener with which the rule's listener conflicts, so that it
	// takes no connections.
	Conflict *ListenerMatch
}

// Taker says what takes the requests that a rule of a route does not get, and why. Another
// rule of the same route is named by its name alone.
func (x *Reach) Taker(own *Route) string {
	switch {
	case x.Conflict != nil:
		return "the listener conflicts with " + x.Conflict.Text() + ", which takes precedence"
	case x.By.Listener == nil:
		return "no listener takes them"
	case x.By.Route == nil:
		return x.By.Listener.Text() + ", which has a more specific hostname, takes them"
	}
	taker := x.By.Route.Ref().String()
	if own != nil && x.By.Route.Ref() == own.Ref() {
		taker = x.By.Route.RuleName(x.By.Rule)
	}
	switch x.First {
	case api.ByOlderRoute:
		return taker + " takes all, since it is older"
	case api.ByName:
		return taker + " takes all, since it is as old and first by name"
	case api.ByEarlierRule:
		return taker + " takes all, since it comes first"
	default:
		return taker + " takes all"
	}
}

// maxReachWork bounds the work of ReachOf, as maxWork does that of a search and of all calls
// for one router.
const maxReachWork = 1 << 18

// ReachOf returns whether requests reach a path at one of its listeners: a path without a route
// ends at one, that may conflict with another one.
func (r *Router) ReachOf(p *Path) Reach {
	out := Reach{Reached: true}
	for _, l := range r.ListenersAt(p) {
		if p.Route == nil {
			by := r.ConflictOf(&l)
			return Reach{Reached: by == nil, Conflict: by}
		}
		if out = r.reach(p.Route, p.Rule, &l); out.Reached {
			return out
		}
	}
	return out
}

// reach returns whether requests reach a rule of a route at a listener, any of its rules if
// it is -1.
//
// One request decides for each match and hostname: the one that meets the match and as few
// others as possible. Where that is served by another match, so are all that meet both.
// What only some implementations do not reach counts as reached, and so do matches of two
// routes without a creation time.
func (r *Router) reach(route *Route, rule int, at *ListenerMatch) Reach {
	if by := r.ConflictOf(at); by != nil {
		return Reach{Conflict: by}
	}
	out := Reach{Reached: true} // without a match that is known
	limit := min(r.memo.reach+maxReachWork, maxWork)
	for e := range r.entriesAt(route, rule, at) {
		if r.memo.reach > limit {
			return Reach{Reached: true}
		}
		start := r.memo.work
		x := r.reachOf(e)
		r.memo.reach += 1 + r.memo.work - start
		if x.Reached && !x.Isolated {
			return x
		}
		switch {
		case out.Request == nil, x.Isolated && !out.Isolated:
			x.Elsewhere = x.Elsewhere || out.Elsewhere
			out = x
		default:
			out.Elsewhere = out.Elsewhere || x.Elsewhere
		}
	}
	if out.Request != nil {
		out.Request = Plain(out.Request, r, r)
	}
	return out
}

// reachOf is reach for a match on one hostname.
func (r *Router) reachOf(e Served) Reach {
	q, _ := witness(e, e, []*routeMatch{e.match}, nil, r.memo)
	if q == nil {
		return Reach{Reached: true}
	}
	s := r.Route(q)
	if s.Same(e) || r.leavesUnsure(s, e) {
		return Reach{Reached: true}
	}
	out := Reach{Request: q, By: s, Elsewhere: s.sameRule(e)}
	if s.Route != nil {
		_, out.First = r.reading.compare(&s, &e)
	}
	if out.First == api.ByName && !e.Route.Dated() {
		return Reach{Reached: true} // which route is older is not known
	}
	if out.By.Listener == nil || !out.By.Listener.Same(e.Listener) {
		sharing := r.sharing()
		start := sharing.memo.work
		s := sharing.Route(out.Request)
		r.memo.reach += sharing.memo.work - start
		out.Isolated = s.Same(e) || sharing.leavesUnsure(s, e)
		out.Reached, out.Elsewhere = out.Isolated, out.Elsewhere || !out.Isolated && s.sameRule(e)
	}
	return out
}

// leavesUnsure reports whether a request that meets a match goes to another one, and it is
// not known whether all do: by regular expressions, whose precedence is the
// implementation's, since only routes of one of two kinds may be accepted, or since the route's
// own hostname may decide.
func (r *Router) leavesUnsure(s, e Served) bool {
	if s.match == nil {
		return false
	}
	mayPrecede := func(order RegexOrder) bool {
		c, _ := Reading{Regex: order}.compare(&e, &s)
		return c < 0
	}
	compete := s.Hostname == e.Hostname && (r.reading.Shared || s.Listener.Same(e.Listener))
	if compete && (mayPrecede(RegexFirst) || mayPrecede(RegexAfterExact) || s.Listener.Service == nil && compareHostnames(e.ownHostname(), s.ownHostname()) < 0) {
		return true
	}
	return s.Route.Kind != e.Route.Kind || e.match.regex && !s.match.covers(e.match)
}

func (s Served) sameRule(e Served) bool {
	return s.Route != nil && s.Rule == e.match.rule && s.Route.Ref() == e.Route.Ref()
}

// ReachAnywhere returns whether requests reach a rule of a route, any of them if it is -1,
// at some listener that accepts the route; if not, as for one of these.
func (r *Router) ReachAnywhere(route *Route, rule int) Reach {
	out := Reach{Reached: true} // without a listener
	for i := range r.conflicts {
		if c := &r.conflicts[i]; r.attached(&c.listener, route) {
			out = Reach{Conflict: &c.with}
		}
	}
	for l := range r.ListenersOf(route) {
		x := r.reach(route, rule, l)
		if x.Elsewhere || x.Reached && !x.Isolated {
			return Reach{Reached: true}
		}
		if out.Request == nil || x.Isolated {
			out = x
		}
	}
	return out
}

// BehindNew yields the routes on a hostname of a listener of another router, which does not
// have it as it is here, that are at a listener of the same port with a less specific one.
// It finds those that name the hostname.
func (r *Router) BehindNew(before *Router) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for i := range r.listeners {
			l := &r.listeners[i]
			if l.Listener.Hostname == "" || slices.ContainsFunc(before.listeners, func(o ListenerMatch) bool { return o.Same(l) && o.sameRequests(l) }) {
				continue
			}
			for k := range r.listeners {
				o := &r.listeners[k]
				if r.inFront(o, l.Listener.Hostname) == nil {
					continue
				}
				for route := range r.attachedAt(o, l.Listener.Hostname, "") {
					if !r.attached(l, route) && !yield(route) {
						return
					}
				}
			}
		}
	}
}
