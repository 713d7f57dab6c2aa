package effective

import (
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Reaches finds out which paths of a view requests reach (SEMANTICS section 9). It is not
// safe for concurrent use.
type Reaches struct {
	view    *snapshot.View
	routers map[api.Ref]*gateway.Router
	known   map[reachKey]gateway.Reach
	// last is the route of the previous path at its root, and whether requests may not
	// reach some rule of it: routes come one after another.
	last struct {
		root  root
		route *gateway.Route
		may   bool
	}
}

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
	return &Reaches{view: v, routers: make(map[api.Ref]*gateway.Router), known: make(map[reachKey]gateway.Reach)}
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
		r.last.root, r.last.route, r.last.may = at, p.Route, r.router(p).MayBeUnreached(p.Route, -1)
	}
	return r.last.may
}

func (r *Reaches) find(p *gateway.Path) gateway.Reach {
	router := r.router(p)
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

// router returns the router of the gateway, or the Service, of a path.
func (r *Reaches) router(p *gateway.Path) *gateway.Router {
	entry := entryOf(p)
	router := r.routers[entry]
	if router == nil {
		if p.Service != nil {
			router = MeshRouter(r.view, p.Service)
		} else {
			router = r.view.Router(p.Gateway, gateway.Reading{})
		}
		router = router.Memoize()
		r.routers[entry] = router
	}
	return router
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
