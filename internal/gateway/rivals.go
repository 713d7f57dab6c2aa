package gateway

import (
	"iter"
	"slices"
	"strings"

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

// Rivals yields the rules, also its own, that have the same match as a rule of the route, in
// whatever spelling. It looks at no more matches than maxRivalMatches: beside more, it finds
// those that come first.
func (r *Router) Rivals(route *Route) iter.Seq[Rival] {
	return func(yield func(Rival) bool) {
		if last := &r.memo.last; (last.route != route || !last.alone) && !r.ownsHosts(route) {
			r.findRivals(route, yield)
		}
	}
}

// MayBeUnreached reports whether requests may not reach some rule of a route: another route or
// rule with the same match precedes it, or not all listeners take the requests for its
// hostnames. It decides that without an index, mostly at once, and remembers it for the last
// route, of which it is often asked for each rule.
func (r *Router) MayBeUnreached(route *Route) bool {
	last := &r.memo.last
	if last.route != route {
		last.route, last.alone = route, false
		last.mayBeUnreached = r.isBehind(route) || r.hasRivalBefore(route)
	}
	return last.mayBeUnreached
}

func (r *Router) hasRivalBefore(route *Route) bool {
	r.memo.last.alone = true
	if r.ownsHosts(route) { // mostly; without a function to yield to
		return false
	}
	found := false
	r.findRivals(route, func(v Rival) bool {
		found, r.memo.last.alone = v.Route == route || v.Route.Precedes(route), false
		return !found
	})
	return found
}

// fewRoutes is for how many routes rivals are looked up without counting the hostnames of all.
const fewRoutes = 16

// ownsHosts reports whether a route has one match, and no other route has one of its hostnames,
// or one that includes others. It is false for the first routes.
func (r *Router) ownsHosts(route *Route) bool {
	if r.memo.asked++; r.memo.asked < fewRoutes || route.MatchCount() != 1 || len(r.listeners) == 0 || r.listeners[0].Service != nil {
		return false
	}
	if r.memo.routesOn == nil {
		r.memo.routesOn = make(map[string]int)
		seen := make(map[api.Ref]bool)
		for i := range r.listeners {
			parent := r.listeners[i].Parent()
			if seen[parent] {
				continue
			}
			seen[parent] = true
			for o := range r.routes.RoutesOf(parent) {
				for _, h := range o.Hostnames {
					if strings.HasPrefix(h, "*") {
						h = ""
					}
					r.memo.routesOn[h]++
				}
				r.memo.routesOn[""] += boolRank(len(o.Hostnames) == 0)
			}
		}
	}
	return r.memo.routesOn[""] == 0 && !slices.ContainsFunc(route.Hostnames, func(h string) bool { return r.memo.routesOn[h] > 1 })
}

func (r *Router) findRivals(route *Route, yield func(Rival) bool) {
	var own map[uint64][]int // rules by match
	left, first := maxRivalMatches, true
	for l := range r.ListenersOf(route) {
		if first {
			first = false
			for _, v := range ownRivals(l, route) {
				if !yield(v) {
					return
				}
			}
		}
		if route == r.memo.solitary {
			return
		}
		for o, segment := range r.neighbors(l, l.hostnames(route), route) {
			if o.Kind != route.Kind {
				continue
			}
			hashes, matches := o.matchHashes(), o.routeMatches()
			if left -= len(hashes); left < 0 {
				return
			}
			if own == nil {
				own = rulesByMatch(route)
			}
			for k, h := range hashes {
				if matches[k].segment != segment {
					continue
				}
				for _, rule := range own[h] {
					if !yield(Rival{l, o, matches[k].rule, rule}) {
						return
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
		left, own, hosts := maxRivalMatches, make(map[int32][]string), r.places()
		for l := range r.ListenersOf(route) {
			own[l.Listener.Port] = append(own[l.Listener.Port], hosts.remaining(l, l.hostnames(route))...)
		}
		for i := range r.listeners {
			l := &r.listeners[i]
			for o := range r.neighbors(l, hosts.remaining(l, own[l.Listener.Port]), route) {
				if left -= o.MatchCount(); left < 0 {
					return
				}
				if sharesPath(o, route) && !yield(o) {
					return
				}
			}
		}
	}
}

func sharesPath(r, o *Route) bool {
	paths := pathsOf(o)
	for path := range pathsOf(r) {
		if paths[path] {
			return true
		}
	}
	return false
}

type pathsKey struct{}

// pathsOf returns the paths of the route's matches, without their types.
func pathsOf(r *Route) map[string]bool {
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

// ownRivals returns the rules of a route that have a match of another of its rules.
func ownRivals(l *ListenerMatch, route *Route) []Rival {
	if route.MatchCount() < 2 {
		return nil
	}
	if hashes := slices.Sorted(slices.Values(route.matchHashes())); len(slices.Compact(hashes)) == len(hashes) {
		return nil
	}
	var out []Rival
	for _, rules := range rulesByMatch(route) {
		for _, rule := range rules {
			if rule != rules[0] {
				out = append(out, Rival{l, route, rules[0], rule})
			}
		}
	}
	return out
}

// rulesByMatch returns the rules of the route by the hashes of their matches.
func rulesByMatch(r *Route) map[uint64][]int {
	out, matches := make(map[uint64][]int), r.routeMatches()
	for i, h := range r.matchHashes() {
		out[h] = append(out[h], matches[i].rule)
	}
	return out
}
