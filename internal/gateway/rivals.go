package gateway

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Rival is a rule of a route that has a match of a rule of another one, on the same
// hostname of the same listener: one of the two takes all requests of that match.
type Rival struct {
	Listener *ListenerMatch
	Route    *Route
	Rule     int
	// Own is the rule of the other route.
	Own int
}

// maxRivalMatches is how many matches Rivals looks at.
const maxRivalMatches = 1 << 14

// Rivals yields the rules, also its own, that have the same match as a rule of the route,
// in whatever spelling. It looks at no more matches than maxRivalMatches: beside more, it
// finds those that come first.
func (r *Router) Rivals(route *Route) iter.Seq[Rival] {
	return func(yield func(Rival) bool) {
		s := rivalSearch{router: r, route: route, yield: yield, left: maxRivalMatches}
		for i := range r.listeners {
			l := &r.listeners[i]
			if !r.attached(l, route) {
				continue
			}
			if s.left == maxRivalMatches && route.MatchCount() > 1 && !s.ownRules(l) || !s.at(l) {
				return
			}
		}
	}
}

// rivalSearch looks for the rivals of a route.
type rivalSearch struct {
	router *Router
	route  *Route
	own    map[uint64][]int // rules by match
	yield  func(Rival) bool
	left   int
}

// at looks for rivals at a listener, and reports whether to go on.
func (s *rivalSearch) at(l *ListenerMatch) bool {
	for o, segment := range s.router.neighbors(l, l.hostnames(s.route), s.route) {
		if o.Kind == s.route.Kind && !s.compare(l, o, segment) {
			return false
		}
	}
	return true
}

// neighbors yields the other routes at a listener that have one of some hostnames and
// matches of paths with a first segment of the route, with that segment.
func (r *Router) neighbors(l *ListenerMatch, hostnames []string, route *Route) iter.Seq2[*Route, string] {
	return func(yield func(*Route, string) bool) {
		for _, hostname := range hostnames {
			for _, h := range l.hostnamesAt(hostnamesFor(hostname), 0) {
				for _, segment := range route.Segments() {
					for o := range r.routes.RoutesAt(l.Parent(), h, segment) {
						if o != route && slices.Contains(o.Segments(), segment) && r.attached(l, o) && !yield(o, segment) {
							return
						}
					}
				}
			}
		}
	}
}

// SharingPath yields the other routes that have a path of the route, whatever its type, on
// the same hostname and port; some of them several times. It looks at no more matches than
// maxRivalMatches.
func (r *Router) SharingPath(route *Route) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		left, own, hosts := maxRivalMatches, make(map[int32][]string), r.listenerHosts()
		for _, l := range r.ListenersOf(route) {
			own[l.Listener.Port] = append(own[l.Listener.Port], hosts.at(&l, l.hostnames(route))...)
		}
		for i := range r.listeners {
			l := &r.listeners[i]
			for o := range r.neighbors(l, hosts.at(l, own[l.Listener.Port]), route) {
				if left -= o.MatchCount(); left < 0 {
					return
				}
				if o.sharesPath(route) && !yield(o) {
					return
				}
			}
		}
	}
}

// listenerHosts are the hostnames of listeners, by their parent and port.
type listenerHosts map[listenerHost]bool

type listenerHost struct {
	parent   api.Ref
	port     int32
	hostname string
}

func (r *Router) listenerHosts() listenerHosts {
	out := make(listenerHosts, len(r.listeners))
	for i := range r.listeners {
		l := &r.listeners[i]
		out[listenerHost{l.Parent(), l.Listener.Port, l.Listener.Hostname}] = true
	}
	return out
}

// at returns the hostnames, each once, without those of other listeners of the same parent
// and port, which take their requests.
func (h listenerHosts) at(l *ListenerMatch, hostnames []string) []string {
	var out []string
	for _, hostname := range hostnames {
		isolated := hostname != "" && hostname != l.Listener.Hostname && h[listenerHost{l.Parent(), l.Listener.Port, hostname}]
		if !isolated && !slices.Contains(out, hostname) {
			out = append(out, hostname)
		}
	}
	return out
}

func (r *Route) sharesPath(o *Route) bool {
	paths := o.paths()
	for path := range r.paths() {
		if paths[path] {
			return true
		}
	}
	return false
}

type pathsKey struct{}

// paths returns the paths of the route's matches, without their types.
func (r *Route) paths() map[string]bool {
	return r.Memoize(pathsKey{}, func() any { //nolint:forcetypeassert // it has no other value
		out := make(map[string]bool)
		for _, m := range r.routeMatches() {
			if path := m.path.value; m.service.value != "" && m.method.value != "" {
				out["/"+m.service.value+"/"+m.method.value] = true
			} else {
				out[path] = true
			}
		}
		return out
	}).(map[string]bool)
}

// compare yields the rules of a route that have a match of the other one, of paths with a
// first segment. It reports whether to go on.
func (s *rivalSearch) compare(l *ListenerMatch, o *Route, segment string) bool {
	own, hashes, matches := s.ownMatches(), o.matchHashes(), o.routeMatches()
	if s.left -= len(hashes); s.left < 0 {
		return false
	}
	for i := range hashes {
		if matches[i].segment != segment {
			continue
		}
		for _, rule := range own[hashes[i]] {
			if !s.yield(Rival{l, o, matches[i].rule, rule}) {
				return false
			}
		}
	}
	return true
}

// fewMatches is how many matches are compared with one another without an index.
const fewMatches = 16

// ownRules yields the rules of the route that have a match of another of its rules. It
// reports whether to go on.
func (s *rivalSearch) ownRules(l *ListenerMatch) bool {
	hashes := s.route.matchHashes()
	if len(hashes) <= fewMatches && !hasDuplicates(hashes) {
		return true
	}
	for _, rules := range s.ownMatches() {
		for _, rule := range rules {
			if rule != rules[0] && !s.yield(Rival{l, s.route, rules[0], rule}) {
				return false
			}
		}
	}
	return true
}

func hasDuplicates(hashes []uint64) bool {
	for i, h := range hashes {
		if slices.Contains(hashes[:i], h) {
			return true
		}
	}
	return false
}

// ownMatches returns the rules of the route by the hashes of their matches.
func (s *rivalSearch) ownMatches() map[uint64][]int {
	if s.own == nil {
		s.own = make(map[uint64][]int)
		matches := s.route.routeMatches()
		for i, h := range s.route.matchHashes() {
			s.own[h] = append(s.own[h], matches[i].rule)
		}
	}
	return s.own
}

// OtherKinds yields those of some routes that read requests as another one does, and are on
// a listener with it, on intersecting hostnames: an HTTPRoute beside a GRPCRoute, of which
// Gateway API has only one accepted. It looks at a limited number.
func (r *Router) OtherKinds(route *Route, others func(parent *ListenerMatch) iter.Seq[*Route]) iter.Seq2[*ListenerMatch, *Route] {
	return func(yield func(*ListenerMatch, *Route) bool) {
		left := maxRivalMatches
		for i := range r.listeners {
			l := &r.listeners[i]
			if !r.attached(l, route) {
				continue
			}
			for o := range others(l) {
				if left--; left < 0 {
					return
				}
				if r.attached(l, o) && hostsIntersect(l.hostnames(route), l.hostnames(o)) && !yield(l, o) {
					return
				}
			}
		}
	}
}

func hostsIntersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return HostnamesIntersect(x, y) })
	})
}

// Precedes reports whether a route comes before another one whose matches are the same: it
// is older, or as old and first by name.
func (r *Route) Precedes(o *Route) bool { return compareAge(r, o) < 0 }
