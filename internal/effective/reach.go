package effective

import (
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Reaches finds out which paths requests reach (SEMANTICS section 9). It is not safe for
// concurrent use.
type Reaches struct {
	router func(*gateway.Path) *gateway.Router
	known  map[reachKey]gateway.Reach
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
	routers := make(map[api.Ref]*gateway.Router)
	return ReachesBy(func(p *gateway.Path) *gateway.Router {
		if p.Service == nil {
			if routers[p.Gateway.Ref()] == nil {
				routers[p.Gateway.Ref()] = v.Router(p.Gateway, gateway.Reading{})
			}
			return routers[p.Gateway.Ref()]
		}
		if routers[p.Service.Ref()] == nil {
			routers[p.Service.Ref()] = MeshRouter(v, p.Service, v)
		}
		return routers[p.Service.Ref()]
	})
}

// ReachesBy returns a Reaches that asks for the router of the gateway or the Service of a path,
// nil for none.
func ReachesBy(router func(*gateway.Path) *gateway.Router) *Reaches {
	return &Reaches{router: router, known: make(map[reachKey]gateway.Reach)}
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
	router := r.router(p)
	if router == nil || p.Route != nil && !router.MayBeUnreached(p.Route) {
		return gateway.Reach{Reached: true}
	}
	key := reachKey{p.Gateway, p.Listener, p.Service, p.Port, p.Client, p.Route, p.Rule}
	x, ok := r.known[key]
	if !ok {
		x = router.ReachOf(p)
		r.known[key] = x
	}
	return x
}

// MeshRouter returns the router of a Service in a view, for the clients that have routes of
// their own to it in some views.
func MeshRouter(v *snapshot.View, s *gateway.Service, of ...*snapshot.View) *gateway.Router {
	clients := make(map[string]bool)
	for _, v := range of {
		for r := range v.RoutesOf(s.Ref()) {
			if r.Namespace != s.Namespace {
				clients[r.Namespace] = true
			}
		}
	}
	return gateway.NewMeshRouter(s, slices.Sorted(maps.Keys(clients)), slices.Collect(v.RoutesOf(s.Ref())), gateway.Reading{})
}
