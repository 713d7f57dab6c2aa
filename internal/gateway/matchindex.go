package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// hostIndex has the matches that can serve the requests for one host that come in by the
// same listeners: those of the most specific hostname on which routes are attached, or of
// all that match the host where requests fall back to less specific ones. It
// reads the routes when it is asked, by the first segment of paths. The routers of all
// readings that differ only in the precedence of regular expressions share it.
type hostIndex struct {
	router    *Router          // that made it
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

// indexed is a match in an index.
type indexed struct {
	entry

	order int // among matches of the same precedence
}

// indexFor returns the index for the host of a request.
func (r *Router) indexFor(q *Request) *hostIndex {
	key := hostKey{listenerKey{q.Transport, q.Port, q.Host, q.Client}, q.host(), r.reading}
	key.reading.Regex = RegexLast
	if q.Transport == TransportTLS {
		key.listeners.host = q.sni()
	}
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

func (r *Router) newHostIndex(q *Request) *hostIndex {
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
			break
		}
	}
	if len(x.sources) > 0 {
		x.hostname = x.sources[0].on
	}
	return x
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
			if seen[at] || !slices.Contains(route.Segments(), segment) || !x.router.attached(s.listener, route) || !route.counts(s.kind) {
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
		rule = append(rule, indexed{entry{at.listener, at.route, &matches[i], hostname}, x.read})
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
func (r *Router) routeIn(x *hostIndex, q *Request) Served {
	switch {
	case len(x.listeners) == 0:
		return Served{}
	case len(x.sources) == 0:
		return Served{Listener: x.listeners[0]}
	}
	var best *indexed
	consider := func(m *indexed) {
		r.memo.work += m.match.cost
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
		r.memo.looked += p.metBy(q, consider)
	}
	if best == nil {
		return Served{Listener: x.listeners[0], Hostname: x.hostname}
	}
	return best.served()
}

// precedes reports whether a match comes before another one on the same hostname.
func (r *Router) precedes(a, b *indexed) bool {
	if c := r.compare(a.served(), b.served()); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

// competitors returns the matches of an index that may have requests in common with a
// match. They are looked at.
func (r *Router) competitors(x *hostIndex, m *routeMatch) []*indexed {
	var out []*indexed
	collect := func(o *indexed) {
		r.memo.work++
		if !m.excludes(o.match) {
			out = append(out, o)
		}
	}
	for _, p := range x.partsFor(m.segment) {
		r.memo.looked += p.compatible(m, collect)
	}
	return out
}

// matchIndex finds matches by their paths, and by one more condition on an exact value. It
// groups them when it is asked for some.
type matchIndex struct {
	rules    [][]indexed // at a listener
	count    int         // of their matches
	byMatch  map[*routeMatch]*indexed
	groups   map[pathKey]*pathGroup
	literals []pathKey // of the groups, sorted by their text
	lengths  []int     // of the texts of regular expressions, each once
}

// pathKey is what a match says about paths: an operator and a text. Of a regular
// expression, the text is what all of its values start with.
type pathKey struct {
	op   operator
	text string
}

// pathKey returns the key of the match. That of a gRPC method is its path.
func (m *routeMatch) pathKey() pathKey {
	regex := func(c condition) pathKey {
		text, _ := c.regex.LiteralPrefix()
		return pathKey{matchesRegex, text}
	}
	switch {
	case !m.grpc && m.path.op == matchesRegex:
		return regex(m.path)
	case !m.grpc:
		return pathKey{m.path.op, m.path.value}
	case m.service.op != exactly:
		return pathKey{}
	case m.method.op == exactly:
		return pathKey{exactly, "/" + m.service.value + "/" + m.method.value}
	default:
		return pathKey{underPrefix, "/" + m.service.value}
	}
}

// add adds the matches of a rule.
func (x *matchIndex) add(rule []indexed) {
	if len(rule) > 0 {
		x.rules, x.count = append(x.rules, rule), x.count+len(rule)
	}
}

// matches yields all matches.
func (x *matchIndex) matches(yield func(*indexed) bool) {
	for _, rule := range x.rules {
		for i := range rule {
			if !yield(&rule[i]) {
				return
			}
		}
	}
}

// group groups the matches by their paths.
func (x *matchIndex) group() {
	if x.groups != nil {
		return
	}
	x.groups = make(map[pathKey]*pathGroup, x.count)
	for m := range x.matches {
		key := m.match.pathKey()
		g := x.groups[key]
		if g == nil {
			g = &pathGroup{}
			x.groups[key] = g
			if n := len(key.text); key.op == matchesRegex && !slices.Contains(x.lengths, n) {
				x.lengths = append(x.lengths, n)
			}
		}
		g.all = append(g.all, m)
	}
}

// metBy calls visit for the matches whose paths a request meets, and returns how many
// were looked at.
func (x *matchIndex) metBy(q *Request, visit func(*indexed)) (looked int) {
	x.group()
	x.above(pathKey{exactly, q.Path}, func(g *pathGroup) { looked += g.metBy(q, visit) })
	return looked
}

// compatible calls visit for the matches that may have paths in common with another one,
// and returns how many were looked at.
func (x *matchIndex) compatible(m *routeMatch, visit func(*indexed)) (looked int) {
	x.group()
	key := m.pathKey()
	look := func(g *pathGroup) { looked += g.compatible(m, visit) }
	if key.text == "" {
		for _, k := range x.sorted() {
			look(x.groups[k])
		}
		return looked
	}
	x.above(key, look)
	from := key.text
	if key.op == underPrefix {
		from += "/"
	}
	if key.op == exactly {
		return looked
	}
	all := x.sorted()
	at, _ := slices.BinarySearchFunc(all, from, func(k pathKey, text string) int { return strings.Compare(k.text, text) })
	for ; at < len(all) && strings.HasPrefix(all[at].text, from); at++ {
		if !all[at].isAbove(key) { // else it was visited
			look(x.groups[all[at]])
		}
	}
	return looked
}

// isAbove reports whether above visits a key for another one.
func (k pathKey) isAbove(o pathKey) bool {
	switch k.op {
	case anyValue:
		return true
	case exactly:
		return k.text == o.text && o.op != matchesRegex
	case underPrefix:
		return strings.HasPrefix(o.text, k.text) && (len(o.text) == len(k.text) || o.text[len(k.text)] == '/')
	default:
		return strings.HasPrefix(o.text, k.text)
	}
}

// above calls visit for the groups of the same path and of those that contain it.
func (x *matchIndex) above(key pathKey, visit func(*pathGroup)) {
	see := func(op operator, text string) {
		if g := x.groups[pathKey{op, text}]; g != nil {
			visit(g)
		}
	}
	see(anyValue, "")
	if key.op != matchesRegex {
		see(exactly, key.text)
	}
	for i := 1; i < len(key.text); i++ {
		if key.text[i] == '/' {
			see(underPrefix, key.text[:i])
		}
	}
	see(underPrefix, key.text)
	for _, n := range x.lengths {
		if n <= len(key.text) {
			see(matchesRegex, key.text[:n])
		}
	}
}

func (x *matchIndex) sorted() []pathKey {
	if x.literals == nil {
		for k := range x.groups {
			x.literals = append(x.literals, k)
		}
		slices.SortFunc(x.literals, func(a, b pathKey) int { return strings.Compare(a.text, b.text) })
	}
	return x.literals
}

// pathGroup has the matches with the same pathKey. Each is listed by one of its conditions
// on an exact value: the one that the fewest matches of the group have.
type pathGroup struct {
	all   []*indexed
	plain []*indexed                          // without such a condition
	by    map[fieldName]map[string][]*indexed // by the name and the value
}

// fieldName names what an exact condition is on.
type fieldName struct {
	sort fieldSort
	name string
}

type fieldSort uint8

const (
	methodField fieldSort = iota
	headerField
	paramField
)

// field is a condition on an exact value.
type field struct {
	fieldName

	value string
}

// fields yields the conditions of a match on exact values.
func (m *routeMatch) fields(yield func(field) bool) {
	if m.verb != "" && !yield(field{fieldName{methodField, ""}, m.verb}) {
		return
	}
	for _, s := range []struct {
		sort fieldSort
		of   []namedCondition
	}{{headerField, m.headers}, {paramField, m.params}} {
		for i := range s.of {
			if c := &s.of[i]; c.op == exactly && !yield(field{fieldName{s.sort, c.name}, c.value}) {
				return
			}
		}
	}
}

// list lists the matches by their conditions.
func (g *pathGroup) list() {
	if g.plain != nil || g.by != nil {
		return
	}
	count := make(map[field]int)
	for _, m := range g.all {
		for f := range m.match.fields {
			count[f]++
		}
	}
	g.by = make(map[fieldName]map[string][]*indexed)
	for _, m := range g.all {
		var rarest field
		least := 0
		for f := range m.match.fields {
			if n := count[f]; least == 0 || n < least {
				rarest, least = f, n
			}
		}
		if least == 0 {
			g.plain = append(g.plain, m)
			continue
		}
		if g.by[rarest.fieldName] == nil {
			g.by[rarest.fieldName] = make(map[string][]*indexed)
		}
		g.by[rarest.fieldName][rarest.value] = append(g.by[rarest.fieldName][rarest.value], m)
	}
}

// metBy calls visit for the matches whose condition a request meets.
func (g *pathGroup) metBy(q *Request, visit func(*indexed)) (looked int) {
	g.list()
	look := func(all []*indexed) {
		looked += len(all)
		for _, m := range all {
			visit(m)
		}
	}
	look(g.plain)
	if len(g.by) == 0 {
		return looked
	}
	look(g.by[fieldName{methodField, ""}][q.Method])
	for i, h := range q.Headers {
		name := strings.ToLower(h.Name)
		if slices.ContainsFunc(q.Headers[:i], func(o Field) bool { return strings.EqualFold(o.Name, name) }) {
			continue
		}
		value, _ := q.Header(name)
		look(g.by[fieldName{headerField, name}][value])
	}
	for i, p := range q.Query {
		if !slices.ContainsFunc(q.Query[:i], func(o Field) bool { return o.Name == p.Name }) {
			look(g.by[fieldName{paramField, p.Name}][p.Value])
		}
	}
	return looked
}

// compatible calls visit for the matches whose condition does not exclude another match.
func (g *pathGroup) compatible(m *routeMatch, visit func(*indexed)) (looked int) {
	g.list()
	look := func(all []*indexed) {
		looked += len(all)
		for _, o := range all {
			visit(o)
		}
	}
	look(g.plain)
	for name, values := range g.by {
		if value, ok := m.valueOf(name); ok {
			look(values[value])
			continue
		}
		for _, all := range values {
			look(all)
		}
	}
	return looked
}

// valueOf returns the exact value that the match requires.
func (m *routeMatch) valueOf(name fieldName) (value string, ok bool) {
	for f := range m.fields {
		if f.fieldName == name {
			return f.value, true
		}
	}
	return "", false
}
