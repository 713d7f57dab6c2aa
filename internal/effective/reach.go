package effective

import (
	"iter"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Reaches finds out which paths of a view requests reach (SEMANTICS section 9). It is not
// safe for concurrent use.
type Reaches struct {
	view    *snapshot.View
	routers func(entry api.Ref) *gateway.Router // that the caller has, nil for none
	entries map[api.Ref]*reachEntry
	known   map[reachKey]gateway.Reach
	// last is the route of the previous path at its root, and whether requests may not
	// reach some rule of it: routes come one after another.
	last struct {
		root  root
		route *gateway.Route
		may   bool
	}
}

// reachEntry is a gateway, or a Service of a mesh.
type reachEntry struct {
	*gateway.Router

	asked int            // for how many routes
	hosts map[string]int // routes by hostname, "" for all that are not exact
}

// fewReaches is for how many routes of an entry hostnames are not compared first: those of
// all are only counted for many.
const fewReaches = 16

// reachKey is what Reaches depends on.
type reachKey struct {
	gateway  *gateway.Gateway
	listener *gateway.Listener
	service  *gateway.Service
	port     int32
	client   string
	route    *gateway.Route
	rule     int
}

// NewReaches returns a Reaches for a view.
func NewReaches(v *snapshot.View) *Reaches {
	return &Reaches{view: v, entries: make(map[api.Ref]*reachEntry), known: make(map[reachKey]gateway.Reach)}
}

// With has routers that are known already used for gateways and Services.
func (r *Reaches) With(routers func(entry api.Ref) *gateway.Router) *Reaches {
	r.routers = routers
	return r
}

// Mark marks a path that no request reaches, if it has policies.
func (r *Reaches) Mark(e *Effective) {
	if len(e.Outcomes) == 0 {
		return
	}
	if x := r.Of(&e.Path); !x.Reached {
		e.Unreached = new(x)
	}
}

// Of returns whether requests reach a path. It counts as reached if that cannot be decided.
func (r *Reaches) Of(p *gateway.Path) gateway.Reach {
	if p.Service == nil && (p.Gateway == nil || p.Listener == nil) || p.Service != nil && p.Route == nil {
		return gateway.Reach{Reached: true}
	}
	if p.Route != nil && !r.mayBeUnreached(p) {
		return gateway.Reach{Reached: true}
	}
	key := reachKey{p.Gateway, p.Listener, p.Service, p.Port, p.Client, p.Route, p.Rule}
	x, ok := r.known[key]
	if !ok {
		x = r.find(p)
		r.known[key] = x
	}
	return x
}

// mayBeUnreached reports whether requests may not reach some rule of the route of a path.
func (r *Reaches) mayBeUnreached(p *gateway.Path) bool {
	at := root{gateway: p.Gateway, service: p.Service}
	if r.last.root != at || r.last.route != p.Route {
		entry := r.entry(p)
		r.last.root, r.last.route = at, p.Route
		r.last.may = (entry.IsBehind(p.Route) || !entry.hasOwnHosts(r.view, p)) && entry.MayBeUnreached(p.Route, -1)
	}
	return r.last.may && r.entry(p).MayBeUnreached(p.Route, p.Rule)
}

// hasOwnHosts reports whether the route of a path has one match, and no other route at the
// gateway has one of its hostnames, or one that includes others. It is false for the first
// routes.
func (x *reachEntry) hasOwnHosts(v *snapshot.View, p *gateway.Path) bool {
	if x.asked++; x.asked < fewReaches || p.Gateway == nil || p.Route.MatchCount() != 1 {
		return false
	}
	if x.hosts == nil {
		x.hosts = make(map[string]int)
		x.countHosts(v.RoutesOf(p.Gateway.Ref()))
		for s := range v.SetsOf(p.Gateway) {
			x.countHosts(v.RoutesOf(s.Ref()))
		}
	}
	return x.hosts[""] == 0 && !slices.ContainsFunc(p.Route.Hostnames, func(h string) bool { return x.hosts[h] > 1 })
}

func (x *reachEntry) countHosts(routes iter.Seq[*gateway.Route]) {
	for r := range routes {
		for _, h := range r.Hostnames {
			if strings.HasPrefix(h, "*") {
				h = ""
			}
			x.hosts[h]++
		}
		if len(r.Hostnames) == 0 {
			x.hosts[""]++
		}
	}
}

func (r *Reaches) find(p *gateway.Path) gateway.Reach {
	router := r.entry(p).Router
	out := gateway.Reach{Reached: true}
	for _, l := range router.ListenersAt(p) {
		if p.Route == nil {
			return router.ReachOfListener(&l)
		}
		if out = router.Reach(p.Route, p.Rule, &l); out.Reached {
			return out
		}
	}
	return out
}

// entry returns the gateway, or the Service, of a path.
func (r *Reaches) entry(p *gateway.Path) *reachEntry {
	ref := entryOf(p)
	entry := r.entries[ref]
	if entry == nil {
		entry = &reachEntry{}
		switch {
		case r.routers != nil:
			entry.Router = r.routers(ref)
		case p.Service != nil:
			entry.Router = MeshRouter(r.view, p.Service).Memoize()
		default:
			entry.Router = r.view.Router(p.Gateway, gateway.Reading{}).Memoize()
		}
		r.entries[ref] = entry
	}
	return entry
}

func entryOf(p *gateway.Path) api.Ref {
	if p.Service != nil {
		return p.Service.Ref()
	}
	return p.Gateway.Ref()
}

// MeshRouter returns the router of a Service in a view.
func MeshRouter(v *snapshot.View, s *gateway.Service) *gateway.Router {
	routes := slices.Collect(v.RoutesOf(s.Ref()))
	clients := make(map[string]bool)
	for _, r := range routes {
		if r.Namespace != s.Namespace {
			clients[r.Namespace] = true
		}
	}
	return gateway.NewMeshRouter(s, slices.Sorted(maps.Keys(clients)), routes, gateway.Reading{})
}
