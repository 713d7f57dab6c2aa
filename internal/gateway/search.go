package gateway

import (
	"cmp"
	"slices"
)

// stepsPerCompetitor is how many matches a search may look at for each changed match and
// each match that competes with it.
const stepsPerCompetitor = 32

// fewSteps is how many matches it may look at in any case: about a millisecond.
const fewSteps = 1 << 10

// maxWork bounds the work of a search: about half a second, with 1 for a condition of a
// match that a request is compared with.
var maxWork = 1 << 22

// search looks for requests that move.
type search struct {
	before, after *Router
	limits        MoveLimits
	yield         func(Move) bool
	// looked and worked are what the routers had done before, without the work of other
	// searches that share limits.Work, and allowed the matches that may be looked at.
	looked, worked, allowed int
	byPolicies              map[stakeAt][]stakeGroup
	unsearched              map[[2]Served]bool       // rules between which moves are not looked for
	servedAs                map[listenerKey][]string // see hostsServedAs
	within                  map[withinKey][]string   // see hostsWithin
}

// stakeGroup has the matches of an index with the same policies.
type stakeGroup struct {
	policies any
	rules    [][]indexed
	count    int // of the matches
}

// stakeAt is where routes compete: the routes of an index that have matches of paths with
// a first segment.
type stakeAt struct {
	index   *hostIndex
	segment string
}

// rulesOf names the rules of a move, whatever their matches.
func rulesOf(from, to Served) [2]Served {
	return [2]Served{{Listener: from.Listener, Route: from.Route, Rule: from.Rule}, {Listener: to.Listener, Route: to.Route, Rule: to.Rule}}
}

func newSearch(before, after *Router, limits MoveLimits, yield func(Move) bool) *search {
	s := &search{
		before: before, after: after, limits: limits, yield: yield, allowed: fewSteps, byPolicies: make(map[stakeAt][]stakeGroup),
		unsearched: make(map[[2]Served]bool), servedAs: make(map[listenerKey][]string), within: make(map[withinKey][]string),
	}
	s.limits.Work = cmp.Or(limits.Work, new(int))
	s.looked, s.worked = s.steps(), s.work()-*s.limits.Work
	return s
}

// spent reports whether the search may not do more, and overspent whether skip may not.
func (s *search) spent() bool { return s.work() > s.maxWork() }

func (s *search) overspent() bool { return s.work() > 2*s.maxWork() }

func (s *search) maxWork() int { return cmp.Or(s.limits.MaxWork, maxWork) }

// steps returns how many matches the search looked at.
func (s *search) steps() int { return s.before.memo.looked + s.after.memo.looked - s.looked }

// work returns the work of the search, and of others that share limits.Work.
func (s *search) work() int { return s.before.memo.work + s.after.memo.work - s.worked }

// sides returns the router of a changed match, and the one of those that serve its requests on
// the other side of the change. flip is set if requests move to the match.
func (s *search) sides(flip bool) (own, other *Router) {
	if flip {
		return s.after, s.before
	}
	return s.before, s.after
}

// moves looks for requests that move between a match that the change edits, adds or removes and
// those that serve requests for its hostname in the other router; and for more specific
// hostnames where the listener is changed, too. It reports whether to go on.
func (s *search) moves(e Served, flip, listener bool) bool {
	if !s.compete(e, e.Hostname, flip) {
		return false
	}
	if !listener || e.Listener.Service != nil {
		return true
	}
	for _, h := range s.hostsWithin(e, flip) {
		if s.spent() {
			break // the usual case is another one
		}
		if !s.compete(e, h, flip) {
			return false
		}
	}
	return true
}

// withinKey is what hostsWithin depends on.
type withinKey struct {
	listener *ListenerMatch
	hostname string
	policies any
}

// hostsWithin returns the hostnames of routes at other listeners of the port that are more
// specific than the one of a match, where a move from or to these routes matters.
func (s *search) hostsWithin(e Served, flip bool) []string {
	key := withinKey{e.Listener, e.Hostname, s.policies(e, flip)}
	out, known := s.within[key]
	if known {
		return out
	}
	_, other := s.sides(flip)
	seen := map[string]bool{e.Hostname: true}
	for i := range other.listeners {
		l := &other.listeners[i]
		if l.Same(e.Listener) || !l.Listener.SamePort(e.Listener.Listener) || !hostnamesIntersect(l.Listener.Hostname, e.Hostname) {
			continue
		}
		for route := range other.routes.RoutesOf(l.Parent()) {
			other.memo.work++
			for _, h := range route.Hostnames {
				chain := hostnamesFor(h)
				if seen[h] || !slices.Contains(chain, e.Hostname) || !slices.Contains(chain, l.Listener.Hostname) || !other.attached(l, route) {
					continue
				}
				if s.routeMatters(e, Served{Listener: l, Route: route}, flip) {
					out, seen[h] = append(out, h), true
				}
			}
		}
	}
	s.within[key] = out
	return out
}

// policies returns what moves of requests from and to a rule depend on.
func (s *search) policies(at Served, after bool) any {
	if s.limits.Policies == nil {
		return nil
	}
	return s.limits.Policies(at, after)
}

// matters reports whether a move between a match and a rule with some policies does.
func (s *search) matters(e Served, policies any, flip bool) bool {
	if s.limits.AtStake == nil {
		return true
	}
	from, to := s.policies(e, flip), policies
	if flip {
		from, to = to, from
	}
	return s.limits.AtStake(from, to)
}

// routeMatters reports whether a move between a match and some rule of a route does.
func (s *search) routeMatters(e, at Served, flip bool) bool {
	for at.Rule = range at.Route.Rules {
		if s.matters(e, s.policies(at, !flip), flip) {
			return true
		}
	}
	return false
}

// compete looks for requests for a host that move between a changed match and those that serve
// some in the other router.
func (s *search) compete(e Served, host string, flip bool) bool {
	own, other := s.sides(flip)
	if s.limits.Alive != nil && !s.limits.Alive() {
		return false
	}
	q := e.Listener.request(host)
	to := other.indexFor(q)
	if len(to.sources) == 0 {
		return true
	}
	at := own.indexFor(q)
	if !slices.ContainsFunc(at.listeners, e.Listener.Same) || (own.reading.OwnHostnames || host != e.Hostname) && at.find(e.match) == nil {
		return true
	}
	few, matters := s.atStake(e, to, flip)
	if !matters {
		return true
	}
	c := contest{e, own, other, at, to, flip}
	if s.spent() {
		return s.skip(&c)
	}
	if few != nil {
		other.memo.looked, other.memo.work = other.memo.looked+len(few), other.memo.work+len(few)
		s.allowed += stepsPerCompetitor * (1 + len(few))
		for i := range few {
			if !e.match.excludes(few[i].match) && !s.pair(&c, &few[i]) {
				return false
			}
		}
		return true
	}
	preceding := slices.DeleteFunc(own.competitors(at, e.match), func(o *indexed) bool { return own.compare(o.Served, e) >= 0 })
	competing := other.competitors(to, e.match)
	s.allowed += stepsPerCompetitor * (1 + len(preceding) + len(competing))
	for _, o := range preceding {
		own.memo.work += o.match.cost
		if o.match.covers(e.match) {
			return true // it serves nothing
		}
	}
	slices.SortFunc(competing, func(a, b *indexed) int {
		if other.precedes(a, b) {
			return -1
		}
		return 1
	})
	for _, o := range competing {
		other.memo.work += o.match.cost
		if !s.pair(&c, o) {
			return false
		}
		if o.match.covers(e.match) {
			return true
		}
	}
	return true
}

// contest is the competition of a changed match with others.
type contest struct {
	Served

	own, other *Router    // of the match, and of the others
	at, to     *hostIndex // with these
	flip       bool       // requests move to the match
}

// stays reports whether no request moves between the match and another one, since both
// indexes have both matches, or one of them with the one that precedes it.
func (c *contest) stays(o *indexed) bool {
	if there := c.at.find(o.match); there != nil && c.own.compare(there.Served, c.Served) < 0 {
		return true // it takes the requests where the changed match is
	}
	here := c.to.find(c.match)
	return here != nil && c.other.compare(here.Served, o.Served) < 0
}

// ordered returns the match and another one as requests move between them.
func (c *contest) ordered(o Served) (from, to Served) {
	if c.flip {
		return o, c.Served
	}
	return c.Served, o
}

// pair looks for a request that moves between two matches. It reports whether to go on.
func (s *search) pair(c *contest, with *indexed) bool {
	from, to := c.ordered(with.Served)
	switch {
	case !s.matters(c.Served, s.policies(with.Served, !c.flip), c.flip) || s.knows(from, to) || c.stays(with):
		return true
	case s.steps() > s.allowed || s.spent():
		return s.leave(from, to)
	default:
		return s.try(from, to)
	}
}

// knows reports whether the moves between two rules are known already.
func (s *search) knows(from, to Served) bool {
	return s.limits.Known != nil && s.limits.Known(from, to)
}

// maxFew is the most matches at stake that are looked at one by one.
const maxFew = 64

// atStake reports whether a move between a match and some match of another index matters,
// and returns those for which it does where they are few of many, else nil.
func (s *search) atStake(e Served, to *hostIndex, flip bool) (few []indexed, matters bool) {
	if s.limits.AtStake == nil {
		return nil, true
	}
	all, count := 0, 0
	groups := s.groups(to, e.match.segment, !flip)
	for i := range groups {
		g := &groups[i]
		all += g.count
		if !s.matters(e, g.policies, flip) {
			continue
		}
		matters = true
		if count += g.count; count <= maxFew {
			few = slices.Concat(few, slices.Concat(g.rules...))
		}
	}
	if count > maxFew || 4*count > all {
		return nil, matters
	}
	return few, matters
}

// groups returns the matches of an index that may have requests in common with those of
// paths with a first segment, by what moves to and from them depend on.
func (s *search) groups(x *hostIndex, segment string, after bool) []stakeGroup {
	at := stakeAt{x, segment}
	if known, ok := s.byPolicies[at]; ok {
		return known
	}
	var out []stakeGroup
	index := make(map[any]int)
	for _, rule := range x.rulesFor(segment) {
		p := s.policies(rule[0].Served, after)
		i, ok := index[p]
		if !ok {
			i = len(out)
			index[p] = i
			out = append(out, stakeGroup{policies: p})
		}
		out[i].rules, out[i].count = append(out[i].rules, rule), out[i].count+len(rule)
	}
	s.byPolicies[at] = out
	return out
}

// skip yields moves between a match and the rules that may compete with it where something is
// at stake, without looking for requests. It reports whether to go on. Whether matches have
// requests in common is not compared either once that has cost as much as the search.
func (s *search) skip(c *contest) bool {
	for _, g := range s.groups(c.to, c.match.segment, !c.flip) {
		if !s.matters(c.Served, g.policies, c.flip) {
			continue
		}
		for _, rule := range g.rules {
			from, to := c.ordered(rule[0].Served)
			if s.unsearched[rulesOf(from, to)] || s.knows(from, to) {
				continue
			}
			competes := slices.ContainsFunc(rule, func(o indexed) bool {
				c.other.memo.work += o.match.cost
				return s.overspent() || !c.match.excludes(o.match)
			})
			if competes && !s.leave(from, to) {
				return false
			}
		}
	}
	return true
}

// leave yields a move for which no request is looked for, once for two rules.
func (s *search) leave(from, to Served) bool {
	at := rulesOf(from, to)
	if s.unsearched[at] {
		return true
	}
	s.unsearched[at] = true
	return s.yield(Move{From: from, To: to, Unsearched: true})
}

// try yields a request that moves from one match to another, if there is one. It reports
// whether to go on.
func (s *search) try(e, f Served) bool {
	if e.match.excludes(f.match) {
		return true
	}
	var m Move
	q, d := findRequest(e, f, nil, s.before.memo, func(q *Request) (by *routeMatch, ok bool) {
		m = newMove(q, s.before, s.after)
		return m.takenBy(e, f)
	})
	switch d {
	case exists:
		return s.yield(m) && s.onOtherHosts(e, f, q)
	case missing:
		return true
	case unsearched:
		return s.leave(e, f)
	default: // unread
		other, _ := s.before.served(e, narrower(e, f).Hostname)
		return s.yield(Move{From: e, To: f, Other: other})
	}
}

// onOtherHosts yields requests that move from one match to another as a known one does, where
// listeners share their routes: for more specific hostnames of listeners without routes, unless
// the moves between the two rules are known. Where listeners are isolated, these requests do
// not move, since nothing serves them. It reports whether to go on.
func (s *search) onOtherHosts(e, f Served, q *Request) bool {
	if !s.before.reading.Shared || q.Transport == TransportTCP || q.Transport == TransportUDP {
		return true
	}
	start := s.steps()
	defer func() { s.allowed += s.steps() - start }()
	for _, h := range s.hostsServedAs(narrower(e, f), q) {
		if s.knows(e, f) {
			return true
		}
		other := *q
		other.setHost(h)
		if m := newMove(&other, s.before, s.after); m.From.Same(e) && m.To.Same(f) && !s.yield(m) {
			return false
		}
	}
	return true
}

// listenersPerWork is with how many listeners a host is compared for the work of one condition.
const listenersPerWork = 8

// hostsServedAs returns the hostnames of listeners that are more specific than the one of a
// match, and whose requests the routes of the same hostname serve as one for it, before and
// after the change. Once the search has spent its work, it looks at no more of them.
func (s *search) hostsServedAs(e Served, q *Request) []string {
	key := listenerKey{q.Transport, q.Port, e.Hostname, q.Client}
	out, known := s.servedAs[key]
	if known {
		return out
	}
	for _, h := range hostnamesIn(e, s.before, s.after)[1:] {
		if s.spent() {
			break
		}
		s.before.memo.work += (len(s.before.listeners) + len(s.after.listeners)) / listenersPerWork
		other := *q
		other.setHost(h)
		if s.before.indexFor(&other).hostname == s.before.indexFor(q).hostname && s.after.indexFor(&other).hostname == s.after.indexFor(q).hostname {
			out = append(out, h)
		}
	}
	s.servedAs[key] = out
	return out
}
