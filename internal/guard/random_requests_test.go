package guard_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// plainMatch is a match of a rule.
type plainMatch struct {
	path, method string
	header       string         // "h" for an exact one, "~h" for a regular expression, "" for none
	regex        *regexp.Regexp // nil for a prefix
}

// plainMatches has the matches that were read, by their text.
var plainMatches sync.Map

func readMatch(text string) plainMatch {
	if m, ok := plainMatches.Load(text); ok {
		return m.(plainMatch)
	}
	m := newPlainMatch(text)
	plainMatches.Store(text, m)
	return m
}

func newPlainMatch(text string) plainMatch {
	text, get := strings.CutPrefix(text, "GET ")
	text, header, _ := strings.Cut(text, " ")
	text, regex := strings.CutPrefix(text, "~")
	m := plainMatch{path: text, header: header}
	if regex {
		m.regex = regexp.MustCompile("^(?:" + text + ")$")
	}
	if get {
		m.method = "GET"
	}
	return m
}

func (m plainMatch) takes(q plainRequest) bool {
	under := m.path == "/" || q.path == m.path || strings.HasPrefix(q.path, m.path+"/")
	if m.regex != nil {
		under = m.regex.MatchString(q.path)
	}
	return under && (m.method == "" || m.method == q.method) && (m.header == "" || q.header == "1" || m.header == "~h" && q.header == "11")
}

// rank has how specific a match is where regular expressions come first, last or, as if exact
// paths were before them, in the middle.
func (m plainMatch) rank(expressions string) []int {
	length := len(strings.TrimSuffix(m.path, "/"))
	if m.regex != nil && expressions == "first" {
		length = 0
	}
	return []int{btoi((m.regex != nil) == (expressions != "last")), length, len(m.method), min(len(m.header), 1), btoi(m.header == "h" && expressions == "middle")}
}

// plainRequest is one of the requests that the random worlds distinguish.
type plainRequest struct {
	port               int
	host, path, method string
	header             string // the value of header h, "" for none
}

var plainRequests = requestsFor([]string{"", "1"}, "/", "/1", "/1/2", "/1/9", "/2", "/3", "/4", "/9")

// plainRequestsOfExpressions are those that the worlds with regular expressions distinguish.
var plainRequestsOfExpressions = requestsFor([]string{"", "1", "11"}, "/", "/1", "/1/2", "/1/2/9", "/1/8", "/1/9", "/2", "/2/9", "/3", "/3/9", "/4", "/4/9", "/9")

func requestsFor(headers []string, paths ...string) []plainRequest {
	var out []plainRequest
	for _, port := range []int{80, 81} {
		for _, host := range []string{"x.example", "y.example", "z.example", "far.other"} {
			for _, path := range paths {
				for _, method := range []string{"GET", "PUT"} {
					for _, header := range headers {
						out = append(out, plainRequest{port, host, path, method, header})
					}
				}
			}
		}
	}
	return out
}

// plainServed is where a request goes: a path of a kind whose paths end at rules. route
// is nil if nothing serves it.
type plainServed struct{ plainPath }

func (s plainServed) place() string {
	if s.route == nil {
		return ""
	}
	return s.name(s.rule)
}

// plainEntry is a listener with the routes on it.
type plainEntry struct {
	plainPath
	routes []plainRoute
}

// plainReading is how an implementation routes requests: shared has the routes of all
// listeners compete, else only those of the most specific one do; own has the hostnames of the
// routes decide where they have the same ones in common with their listeners.
type plainReading struct {
	shared, own bool
	expressions string
}

// plainReadings are all of them, the first four those without regular expressions.
var plainReadings = func() (out []plainReading) {
	for _, expressions := range []string{"last", "first", "middle"} {
		out = append(out, plainReading{false, false, expressions}, plainReading{true, false, expressions}, plainReading{false, true, expressions}, plainReading{true, true, expressions})
	}
	return out
}()

// serve decides where a request goes at a gateway.
func serve(entries []plainEntry, q plainRequest, reading plainReading) plainServed {
	var at []plainEntry
	for _, p := range entries {
		if p.listener.Port == q.port && matches(p.listener.Host, q.host) {
			at = append(at, p)
		}
	}
	slices.SortStableFunc(at, func(a, b plainEntry) int { return specific(b.listener.Host) - specific(a.listener.Host) })
	var out plainServed
	if len(at) > 1 && !reading.shared {
		at = at[:1]
	}
	type candidate struct {
		plainPath
		plainMatch
		hostname int
	}
	var met []candidate
	top := -1
	for _, p := range at {
		for i := range p.routes {
			r := &p.routes[i]
			hostname := -1
			for _, h := range append(slices.Clone(r.Hosts), []string{""}[:1-min(len(r.Hosts), 1)]...) {
				if matches(h, q.host) {
					hostname = max(hostname, 2000*max(specific(h), specific(p.listener.Host))+btoi(reading.own)*specific(h))
				}
			}
			if hostname < 0 {
				continue
			}
			top = max(top, hostname)
			on := p.plainPath
			on.route = r
			for on.rule = range r.Rules {
				for _, text := range r.Rules[on.rule].Matches {
					if m := readMatch(text); m.takes(q) {
						met = append(met, candidate{on, m, hostname})
					}
				}
			}
		}
	}
	met = slices.DeleteFunc(met, func(c candidate) bool { return c.hostname < top })
	if len(met) == 0 {
		return out
	}
	out.plainPath = slices.MinFunc(met, func(a, b candidate) int {
		return cmp.Or(
			slices.Compare(b.rank(reading.expressions), a.rank(reading.expressions)),
			a.route.Created-b.route.Created, strings.Compare(a.route.Namespace+"/"+a.route.Name, b.route.Namespace+"/"+b.route.Name), a.rule-b.rule,
			specific(b.listener.Host)-specific(a.listener.Host),
		)
	}).plainPath
	return out
}

// specific is how specific a hostname is.
func specific(host string) int {
	if host == "" || strings.HasPrefix(host, "*") {
		return len(host)
	}
	return 1000
}

// hasExpressions reports whether a world has regular expressions.
func (w plainWorld) hasExpressions() bool {
	return slices.ContainsFunc(all[plainRoute](w), func(r plainRoute) bool {
		return slices.ContainsFunc(r.Rules, func(r plainRule) bool {
			return slices.ContainsFunc(r.Matches, func(m string) bool { return strings.Contains(m, "~") })
		})
	})
}

// traffic is where requests go at the gateways of a world, by the readings of which they are.
func (w plainWorld) traffic(requests []plainRequest, readings []plainReading) map[string][][]plainServed {
	out := make(map[string][][]plainServed)
	for _, g := range all[plainGateway](w) {
		var entries []plainEntry
		for _, p := range w.accepted("AtRule") {
			if p.gateway.key() == g.key() {
				entries = append(entries, plainEntry{p, slices.DeleteFunc(all[plainRoute](w), func(r plainRoute) bool { return !w.takes(p, r) })})
			}
		}
		list := make([][]plainServed, len(requests))
		for i, q := range requests {
			list[i] = make([]plainServed, 0, len(readings))
			for _, reading := range readings {
				list[i] = append(list[i], serve(entries, q, reading))
			}
		}
		out[g.key().String()] = list
	}
	return out
}

// plainTraffic is where requests go before and after a change.
type plainTraffic struct {
	before, after plainWorld
	written       plainName
	requests      []plainRequest
	was, is       map[string][][]plainServed
	moves         bool // a request on which an override held is served by another rule
}

// loses reports whether an override that held on a path is lost: for a request of the
// path that is served elsewhere or as before, or by its route at another port or gateway,
// since nothing serves it at its own. It is lost in one reading, and not kept in another one for
// requests that came to the same rule.
func (c *plainTraffic) loses(o plainOverride, x plainPath, paths []plainPath, known map[string]bool) bool {
	if x.route == nil {
		return c.after.losesByName(o, x, paths, known) || c.losesConnections(o, x, paths)
	}
	if x.kind != "AtBackend" && o.level >= atRouteNamespace && !c.binds(o, x) {
		return false // a warning
	}
	self := slices.IndexFunc(paths, func(y plainPath) bool { return y.earlier(x) == x.name(x.rule) })
	kept, ends := self >= 0 && c.after.given(o, paths[self]), false
	is, nowhere := c.is[x.gateway.key().String()], make([]plainServed, len(plainReadings))
	for i, was := range c.was[x.gateway.key().String()] {
		to := nowhere[:len(was)]
		if is != nil {
			to = is[i]
		}
		for reading := range was {
			from, at := was[reading], to[reading]
			if from.route == nil || !sameRuleAt(from.plainPath, x) {
				continue
			}
			if at.route == nil {
				ends = true
				unsure := slices.ContainsFunc(to, func(s plainServed) bool { return s.route != nil && c.keepsAt(o, x, s, paths) })
				if self >= 0 && !unsure && c.losesAwaited(o, x, paths[self], c.requests[i].host) {
					return true
				}
				continue
			}
			stays := self >= 0 && sameRuleAt(at.plainPath, paths[self])
			if stays && !kept {
				return true
			}
			if stays && (o.level < atBackend || paths[self].isSent()) {
				continue
			}
			c.moves = true
			if !c.losesAt(o, x, at, paths) {
				continue
			}
			unmoved := reading == 0 && sameListener(from, at) && at.route.key() == from.route.key() && pairs(from.route, at.route)[at.rule] == from.rule
			unsure := false
			for other := range was {
				unsure = unsure || !unmoved && was[other].place() == from.place() && to[other].route != nil && to[other].place() != at.place() && c.keepsAt(o, x, to[other], paths)
			}
			if !unsure {
				return true
			}
		}
	}
	if self >= 0 || !ends {
		return false
	}
	return slices.ContainsFunc(c.after.successors(o, x, paths, known), func(y plainPath) bool {
		samePort := !y.unread && y.gateway.key() == x.gateway.key() && y.listener.Port == x.listener.Port
		return !samePort && !c.after.given(o, y) && (!y.unread || o.level < atRouteNamespace)
	})
}

// binds reports whether an override on a route binds the write of what is written: not of the
// routes of other namespaces, of their ListenerSets to which the route is not attached, and of
// Namespaces but its own, those of its parents and of the policy.
func (c *plainTraffic) binds(o plainOverride, x plainPath) bool {
	switch home := x.route.Namespace; c.written.Kind {
	case "HTTPRoute", tcpRoute:
		return c.written.Namespace == home
	case "ListenerSet":
		return c.written.Namespace == home || c.written == x.owner()
	case "Namespace":
		return slices.Contains([]string{home, o.Namespace, x.gateway.Namespace, x.owner().Namespace}, c.written.Name)
	default:
		return true
	}
}

// losesAwaited reports whether an override of a path is lost for requests to a host that come
// in by a new listener of a set after the change, although its own would take them: on the
// routes that may be attached there.
func (c *plainTraffic) losesAwaited(o plainOverride, x, self plainPath, host string) bool {
	if c.written.Kind == "Gateway" || x.kind == "AtBackend" || self.listener.Port != x.listener.Port || self.listener.Host != x.listener.Host {
		return false
	}
	entry := c.after.listenerFor(x, host)
	for _, p := range c.after.accepted(x.kind) {
		isNew := !slices.ContainsFunc(c.before.accepted(x.kind), func(b plainPath) bool {
			return (b.set == nil) == (p.set == nil) && (b.set == nil || b.set.key() == p.set.key()) && b.gateway.key() == p.gateway.key() &&
				b.listener.Port == p.listener.Port && b.listener.Host == p.listener.Host && b.listener.TCP == p.listener.TCP
		})
		if p.entry() != entry || entry == self.entry() || !isNew {
			continue
		}
		r := plainRoute{plainName: plainName{"HTTPRoute", p.gateway.Namespace, "*"}, Rules: []plainRule{{}}}
		if p.listener.TCP {
			r.Kind = tcpRoute
		}
		if p.set != nil {
			r.Namespace = p.set.Namespace
		}
		p.route, p.rule = &r, 0
		return !c.after.given(o, p)
	}
	return false
}

// losesAt reports whether an override of a path is lost for its requests that are served
// somewhere after the change.
func (c *plainTraffic) losesAt(o plainOverride, x plainPath, at plainServed, paths []plainPath) bool {
	return slices.ContainsFunc(paths, func(y plainPath) bool {
		return !y.unread && sameRuleAt(at.plainPath, y) && (o.level < atBackend || slices.Contains(y.insteadOf(x), y.backend)) && !c.after.given(o, y)
	})
}

// keepsAt reports whether an override of a path is kept for its requests that are served
// somewhere after the change.
func (c *plainTraffic) keepsAt(o plainOverride, x plainPath, at plainServed, paths []plainPath) bool {
	on := slices.DeleteFunc(slices.Clone(paths), func(y plainPath) bool {
		return y.unread || !sameRuleAt(at.plainPath, y) || o.level >= atBackend && y.backend != x.backend && !slices.Contains(y.insteadOf(x), y.backend)
	})
	return len(on) > 0 && !slices.ContainsFunc(on, func(y plainPath) bool { return !c.after.given(o, y) })
}

// losesConnections reports whether an override that held at a listener is lost for
// connections that come in by another one after the change.
func (c *plainTraffic) losesConnections(o plainOverride, x plainPath, paths []plainPath) bool {
	for _, host := range []string{"x.example", "y.example", "z.example", "far.other"} {
		was, is := c.before.listenerFor(x, host), c.after.listenerFor(x, host)
		if was != x.entry() {
			continue
		}
		for _, y := range paths {
			if !y.unread && y.entry() == is && y.earlier(x) != x.name(x.rule) && !c.after.given(o, y) {
				return true
			}
		}
	}
	return false
}

// listenerFor returns the entry by which connections to a host come in at the gateway and
// port of a path, "" for none.
func (w plainWorld) listenerFor(x plainPath, host string) (entry string) {
	best := -1
	for _, p := range w.accepted(x.kind) {
		if p.gateway.key() != x.gateway.key() || p.listener.Port != x.listener.Port || !matches(p.listener.Host, host) {
			continue
		}
		if n := specific(p.listener.Host); n > best {
			entry, best = p.entry(), n
		}
	}
	return entry
}

// accepted are the entries that do not conflict with one before them.
func (w plainWorld) accepted(kind string) []plainPath {
	var out []plainPath
	for _, p := range w.entries(kind) {
		if !slices.ContainsFunc(out, func(o plainPath) bool {
			return o.gateway.key() == p.gateway.key() && o.listener.Port == p.listener.Port && (o.listener.Host == p.listener.Host || o.listener.TCP != p.listener.TCP)
		}) {
			out = append(out, p)
		}
	}
	return out
}

// sameListener reports whether a request comes in by one listener: of the same name, or of
// the same port and hostname.
func sameListener(was, to plainServed) bool {
	return was.entry() == to.entry() || was.listener.Port == to.listener.Port && was.listener.Host == to.listener.Host
}

// sameRuleAt reports whether two paths have the same listener and rule, by their names
// and places.
func sameRuleAt(x, y plainPath) bool {
	return y.route != nil && x.entry() == y.entry() && x.route.key() == y.route.key() && x.rule == y.rule
}
