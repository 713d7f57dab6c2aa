package gateway

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Served is where a request goes. Route is nil if nothing serves it, Listener also if no
// listener accepts it.
type Served struct {
	Listener *ListenerMatch
	Route    *Route
	// Rule in Route.Rules.
	Rule int
	// Hostname by which it was found: the most specific one that routes of the listener
	// have for the request; "" for any.
	Hostname string

	match *routeMatch
}

// Same reports whether two requests go to the same rule at the same listener, by their
// names.
func (s Served) Same(o Served) bool {
	switch {
	case s.Route == nil || o.Route == nil:
		return s.Route == o.Route
	default:
		return s.Rule == o.Rule && s.Route.Ref() == o.Route.Ref() && s.Listener.Same(o.Listener)
	}
}

// IsOn reports whether requests that go to a rule at a listener may go along a path.
func (s Served) IsOn(p *Path) bool {
	return (p.Rule < 0 || p.Rule == s.Rule) && s.Route.Ref() == p.Route.Ref() && s.Listener.isOn(p)
}

// Path returns the path of the request down to the rule.
func (s Served) Path() Path {
	l := s.Listener
	if l.Service != nil {
		return Path{Service: l.Service, Port: l.Listener.Port, Client: l.Client, Route: s.Route, Rule: s.Rule}
	}
	return Path{Gateway: l.Gateway, Set: l.Set, Listener: l.Listener, Route: s.Route, Rule: s.Rule}
}

// servedBy returns where requests go that meet a match of a route at a listener first, on one
// hostname: the more specific one of the listener's and of the route's.
func servedBy(l *ListenerMatch, route *Route, m *routeMatch, hostname string) Served {
	return Served{Listener: l, Route: route, Rule: m.rule, Hostname: hostname, match: m}
}

// ownHostname returns the route's own hostname by which it was found.
func (s Served) ownHostname() string {
	out := ""
	for _, h := range s.Route.Hostnames {
		if hostnameTakes(h, s.Hostname) && compareHostnames(h, out) < 0 {
			out = h
		}
	}
	return out
}

// matching decides which match of an attached route a request meets first.
type matching struct{ attachments }

// Route returns where a request goes.
func (r *matching) Route(q *Request) Served {
	switch x := r.indexFor(q); {
	case len(x.listeners) == 0:
		return Served{}
	case len(x.sources) == 0:
		return Served{Listener: x.listeners[0]}
	default:
		return r.routeIn(x, q)
	}
}

// hostIndex has the matches that can serve the requests for one host that come in by the
// same listeners: those of the most specific hostname on which routes are attached, or of
// all that match the host where requests fall back to less specific ones. It
// reads the routes when it is asked, by the first segment of paths. The routers of all
// readings that differ only in the precedence of regular expressions share it.
type hostIndex struct {
	router    *matching        // that made it
	listeners []*ListenerMatch // by which the requests come in
	hostname  string           // the most specific one
	sources   []hostIndexSource
	parts     map[string]*matchIndex // by the first segment, "" for matches of any
	complete  bool                   // all parts are there
	read      int                    // matches, for their order
}

// hostIndexSource is where an index has routes from: a hostname of theirs at a listener, and
// the one of both that is more specific.
type hostIndexSource struct {
	hostnameAt

	on string
}

// indexFor returns the index for the host of a request.
func (r *matching) indexFor(q *Request) *hostIndex {
	key := hostKey{q.listenerKey(), q.host(), r.reading}
	key.reading.Regex = RegexLast
	if known, ok := r.memo.hosts[key]; ok {
		return known
	}
	if len(r.memo.hosts) >= maxHosts {
		clear(r.memo.hosts)
	}
	out := r.newHostIndex(q)
	r.memo.hosts[key] = out
	return out
}

func (r *matching) newHostIndex(q *Request) *hostIndex {
	x := &hostIndex{router: r, listeners: r.listenersFor(q), parts: make(map[string]*matchIndex)}
	chain := hostnamesFor(q.host())
	for rank := range chain {
		for _, l := range x.listeners {
			kind := r.kindFor(l, chain)
			for _, h := range l.hostnamesAt(chain, rank) {
				if r.hasRoutes(l, h, kind) {
					x.sources = append(x.sources, hostIndexSource{hostnameAt{l, h, kind}, chain[rank]})
				}
			}
		}
		if len(x.sources) > 0 && !r.reading.FallBack {
			x.sources = r.mostSpecific(x.sources)
			break
		}
	}
	if len(x.sources) > 0 {
		x.hostname = x.sources[0].on
	}
	return x
}

// mostSpecific returns the sources of the most specific hostname of the routes themselves, where
// that decides, of sources on one hostname.
func (r *matching) mostSpecific(all []hostIndexSource) []hostIndexSource {
	if !r.reading.OwnHostnames {
		return all
	}
	first := slices.MinFunc(all, func(a, b hostIndexSource) int { return compareHostnames(a.hostname, b.hostname) })
	return slices.DeleteFunc(all, func(s hostIndexSource) bool { return s.hostname != first.hostname })
}

// part returns the matches of paths with a first segment, or with any for "".
func (x *hostIndex) part(segment string) *matchIndex {
	p := x.parts[segment]
	if p == nil {
		p = &matchIndex{}
		if !x.complete {
			p = x.readPart(segment)
		}
		x.parts[segment] = p
	}
	return p
}

func (x *hostIndex) readPart(segment string) *matchIndex {
	out := &matchIndex{}
	seen := make(map[routeAt]bool) // on several hostnames
	for _, s := range x.sources {
		for route := range x.router.routes.RoutesAt(s.listener.Parent(), s.hostname, segment) {
			at := routeAt{s.listener, route}
			if seen[at] || !slices.Contains(route.Segments(), segment) || !x.router.attached(s.listener, route) || !counts(route, s.kind) {
				continue
			}
			seen[at] = true
			x.readRoute(out, at, s.on, segment)
		}
	}
	return out
}

// readRoute adds the matches of a route at a listener, on a hostname, of paths with a first
// segment.
func (x *hostIndex) readRoute(to *matchIndex, at routeAt, hostname, segment string) {
	matches := at.route.routeMatches()
	count := 0
	for i := range matches {
		count += boolRank(matches[i].segment == segment)
	}
	rule := make([]indexed, 0, count)
	for i := range matches {
		if matches[i].segment != segment {
			continue
		}
		if len(rule) > 0 && rule[0].match.rule != matches[i].rule {
			to.add(rule)
			rule = rule[len(rule):]
		}
		x.read++
		rule = append(rule, indexed{servedBy(at.listener, at.route, &matches[i], hostname), x.read})
	}
	to.add(rule)
}

// readAll reads all parts.
func (x *hostIndex) readAll() {
	if x.complete {
		return
	}
	for _, s := range x.sources {
		for route := range x.router.attachedAt(s.listener, s.hostname, s.kind) {
			for _, segment := range route.Segments() {
				x.part(segment)
			}
		}
	}
	x.complete = true
}

// find returns a match of a route where it comes first, nil if it is not in the index.
func (x *hostIndex) find(m *routeMatch) *indexed {
	p := x.part(m.segment)
	if p.byMatch == nil {
		p.byMatch = make(map[*routeMatch]*indexed, p.count)
		for m := range p.matches {
			if known := p.byMatch[m.match]; known == nil || x.router.precedes(m, known) {
				p.byMatch[m.match] = m
			}
		}
	}
	return p.byMatch[m]
}

// partsFor returns the parts whose matches may have paths in common with those of a first
// segment: all for "".
func (x *hostIndex) partsFor(segment string) []*matchIndex {
	if segment != "" {
		return []*matchIndex{x.part(""), x.part(segment)}
	}
	x.part("")
	x.readAll()
	return slices.Collect(maps.Values(x.parts))
}

// rulesFor returns the matches of paths with a first segment and those of any, all for "", by
// rule, in their order.
func (x *hostIndex) rulesFor(segment string) [][]indexed {
	var out [][]indexed
	for _, p := range x.partsFor(segment) {
		out = append(out, p.rules...)
	}
	slices.SortFunc(out, func(a, b []indexed) int { return cmp.Compare(a[0].order, b[0].order) })
	return out
}

// routeAt is a route at a listener.
type routeAt struct {
	listener *ListenerMatch
	route    *Route
}

// routeIn returns where a request for the host of an index goes.
func (r *matching) routeIn(x *hostIndex, q *Request) Served {
	var best *indexed
	consider := func(m *indexed) {
		r.memo.looked, r.memo.work = r.memo.looked+1, r.memo.work+m.match.cost
		if m.match.takes(q) && (best == nil || r.precedes(m, best)) {
			best = m
		}
	}
	segment := firstSegment(q.Path)
	parts := []*matchIndex{x.part(""), x.part(segment)}
	if segment == "" {
		parts = parts[:1]
	}
	for _, p := range parts {
		p.metBy(q, consider)
	}
	if best == nil {
		return Served{Listener: x.listeners[0], Hostname: x.hostname}
	}
	return best.Served
}

// compare orders matches by precedence: those on one hostname, or on all that match a host
// where requests fall back to less specific ones.
func (r *matching) compare(a, b Served) int {
	if r.reading.FallBack && a.Hostname != b.Hostname {
		return compareHostnames(a.Hostname, b.Hostname)
	}
	if r.reading.OwnHostnames {
		if c := compareHostnames(a.ownHostname(), b.ownHostname()); c != 0 {
			return c
		}
	}
	c, _ := r.reading.compare(&a, &b)
	return c
}

// precedes reports whether a match comes before another one on the same hostname.
func (r *matching) precedes(a, b *indexed) bool {
	if c := r.compare(a.Served, b.Served); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

// ahead returns the other matches of the route of a match with a regular expression that precede
// another one, of which that took a request.
func (r *matching) ahead(by, of Served) []*routeMatch {
	if !by.match.regex {
		return nil
	}
	var out []*routeMatch
	matches := by.Route.routeMatches()
	for i := range matches {
		o := servedBy(by.Listener, by.Route, &matches[i], by.Hostname)
		if o.match != by.match && !o.Same(of) && r.compare(o, of) < 0 {
			out = append(out, o.match)
		}
	}
	return out
}

// competitors returns the matches of an index that may have requests in common with a
// match. They are looked at.
func (r *matching) competitors(x *hostIndex, m *routeMatch) []*indexed {
	var out []*indexed
	collect := func(o *indexed) {
		r.memo.looked, r.memo.work = r.memo.looked+1, r.memo.work+1
		if !m.excludes(o.match) {
			out = append(out, o)
		}
	}
	for _, p := range x.partsFor(m.segment) {
		p.compatible(m, collect)
	}
	return out
}

// entriesAt yields the matches of a rule, of all rules of the route if it is -1, at a listener
// that is known by its name.
func (r *matching) entriesAt(route *Route, rule int, at *ListenerMatch) iter.Seq[Served] {
	return func(yield func(Served) bool) {
		ofRule := func(e Served) bool { return rule >= 0 && e.Rule != rule || yield(e) }
		for i := range r.listeners {
			if l := &r.listeners[i]; l.Same(at) && !r.yieldEntries(route, l, ofRule) {
				return
			}
		}
	}
}

func (r *matching) yieldEntries(route *Route, l *ListenerMatch, yield func(Served) bool) bool {
	if !r.attached(l, route) {
		return true
	}
	for _, h := range l.hostnames(route) {
		matches := route.routeMatches()
		for k := range matches {
			if !yield(servedBy(l, route, &matches[k], h)) {
				return false
			}
		}
	}
	return true
}
