package guard

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// DefaultMatchLimit is the default of Guard.MatchLimit: fifteen routes with as many
// matches as Gateway API allows.
const DefaultMatchLimit = 2000

// matchPoint is where the matches of a namespace's routes are counted.
type matchPoint struct {
	parent   api.Ref
	hostname string // "" for routes without hostnames, and at Services
}

// checkMatchLimit denies the write of a route with which the routes of its namespace have
// more matches on a hostname of a Gateway, ListenerSet or Service than allowed: writes of
// others there are compared with all of them, and with their regular expressions. One that
// adds none there is not denied for existing ones.
func (ev maximumCheck) checkMatchLimit() {
	route, ok := ev.change.After.(*gateway.Route)
	if !ok || ev.guard.MatchLimit == 0 {
		return
	}
	added := make(map[matchPoint]int) // with how many the namespace has there
	for at := range matchPoints(route) {
		added[at] = 0
	}
	if was, ok := ev.before.Get(route.Ref()).(*gateway.Route); ok && was.MatchWeight() >= route.MatchWeight() {
		for at := range matchPoints(was) {
			delete(added, at)
		}
	}
	if len(added) == 0 {
		return
	}
	for r := range routesOfNamespace(ev.after, route.Namespace) {
		for at := range matchPoints(r) {
			if n, ok := added[at]; ok {
				added[at] = n + r.MatchWeight()
			}
		}
	}
	var most matchPoint
	for at := range added {
		if c := cmp.Or(cmp.Compare(added[at], added[most]), -api.CompareRefs(at.parent, most.parent), -strings.Compare(at.hostname, most.hostname)); c > 0 {
			most = at
		}
	}
	if added[most] <= ev.guard.MatchLimit {
		return
	}
	where, counted := most.parent.String(), ""
	if most.hostname != "" {
		where = fmt.Sprintf("hostname %s of %s", most.hostname, most.parent)
	}
	if route.MatchWeight() > route.MatchCount() {
		counted = ", with large regular expressions counted several times"
	}
	ev.denyTooMany(fmt.Sprintf("the routes of namespace %s would have %d matches on %s%s: must have at most %d", route.Namespace, added[most], where, counted, ev.guard.MatchLimit),
		"writes of others there are compared with each of them",
		"use prefixes or hostnames of their own in place of many matches, or ask the cluster administrator to raise --max-matches")
}

func routesOfNamespace(v *snapshot.View, namespace string) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for _, kind := range gateway.RouteKinds {
			for o := range v.In(gateway.KindOf(kind), namespace) {
				if r, ok := o.(*gateway.Route); ok && !yield(r) {
					return
				}
			}
		}
	}
}

// matchPoints yields where a route has its matches, each once.
func matchPoints(r *gateway.Route) iter.Seq[matchPoint] {
	return func(yield func(matchPoint) bool) {
		for i, p := range r.Parents {
			if slices.ContainsFunc(r.Parents[:i], func(o gateway.Parent) bool { return o.Is(p.Kind, p.Namespace, p.Name) }) {
				continue // another section or port of it
			}
			hostnames := r.Hostnames
			if len(hostnames) == 0 || p.Kind == gateway.KindService {
				hostnames = []string{""}
			}
			for _, h := range hostnames {
				if !yield(matchPoint{p.Ref(), h}) {
					return
				}
			}
		}
	}
}

// pathsPerMatch is how many paths the routes of one namespace may have at a gateway for each
// match that they may have on a hostname: by default 20,000, of which an edit of the gateway
// is compared in less than half a second.
const pathsPerMatch = 10

// checkPathLimit denies the write of a route or ListenerSet with which the routes of its
// namespace have more paths at a gateway than allowed: one for each rule and listener.
// Writes of what is above are compared on all of them. One that adds none is not denied for
// existing ones.
func (ev maximumCheck) checkPathLimit() {
	limit := ev.guard.MatchLimit * pathsPerMatch
	if limit == 0 {
		return
	}
	var entries []api.Ref
	switch o := ev.change.After.(type) {
	case *gateway.Route:
		if was, ok := ev.before.Get(o.Ref()).(*gateway.Route); !ok || !was.SameRequests(o) {
			entries = ev.reroutedRoutes(nil, nonNil(o)).entries
		}
	case *gateway.ListenerSet:
		if g := ev.after.Gateway(o.GatewayNamespace, o.GatewayName); g != nil {
			entries = []api.Ref{g.Ref()}
		}
	}
	namespace := ev.change.Object().Ref().Namespace
	for _, entry := range entries {
		at := ev.routersOf(entry)
		if at.mesh {
			continue
		}
		n := countPaths(ev.after, at.after, namespace)
		if n <= limit || n <= countPaths(ev.before, at.before, namespace) {
			continue
		}
		ev.denyTooMany(fmt.Sprintf("the routes of namespace %s would have %d paths by rules and listeners on %s: must have at most %d", namespace, n, entry, limit),
			"writes of what is above are compared on each of them",
			"name single listeners in parentRefs, or ask the cluster administrator to raise --max-matches")
	}
}

// countPaths returns the number of paths of a namespace's routes at a gateway, 0 for none.
func countPaths(v *snapshot.View, router *gateway.Router, namespace string) int {
	n := 0
	if router != nil {
		for r := range routesOfNamespace(v, namespace) {
			n += router.CountPaths(r)
		}
	}
	return n
}
