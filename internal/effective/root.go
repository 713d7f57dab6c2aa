package effective

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// root is where paths start: a gateway or a service.
type root struct {
	gateway *gateway.Gateway
	service *gateway.Service
}

func (r root) object() snapshot.Object {
	if r.service != nil {
		return r.service
	}
	return r.gateway
}

// Ref returns the reference of the object.
func (r root) Ref() api.Ref { return r.object().Ref() }

func (r root) isZero() bool { return r == root{} }

// listeners returns all listeners of a gateway: its own and those of its sets.
func (r root) listeners(v *snapshot.View) []gateway.ListenerMatch {
	if r.gateway == nil {
		return nil
	}
	return v.Listeners(r.gateway)
}

// routes yields the routes that have a root or a listener set of it as a parent, each once.
func (r root) routes(v *snapshot.View) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for route := range v.RoutesOf(r.Ref()) {
			if !yield(route) {
				return
			}
		}
		r.routesBySets(v)(yield)
	}
}

// routesBySets yields the routes that have a listener set of a root as a parent, and
// not the root itself, each once.
func (r root) routesBySets(v *snapshot.View) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		if r.gateway == nil {
			return
		}
		for s := range v.SetsOf(r.gateway) {
			for route := range v.RoutesOf(s.Ref()) {
				if firstOf(v, route, r.gateway) == s.Ref() && !yield(route) {
					return
				}
			}
		}
	}
}

// firstOf returns the first listener set of a gateway that is a parent of a route, zero if
// the gateway itself is one.
func firstOf(v *snapshot.View, r *gateway.Route, g *gateway.Gateway) (set api.Ref) {
	for _, parent := range r.Parents {
		if parent.Is(gateway.KindGateway, g.Namespace, g.Name) {
			return api.Ref{}
		}
		if (set == api.Ref{}) && v.GatewayOf(parent) == g {
			set = parent.Ref()
		}
	}
	return set
}

// rootAt returns the root with a name, zero if there is none.
func rootAt(v *snapshot.View, ref api.Ref) root {
	o := v.Get(ref)
	g, _ := o.(*gateway.Gateway)
	s, _ := o.(*gateway.Service)
	return root{g, s}
}

// routeAt returns the route with a name, nil if there is none.
func routeAt(v *snapshot.View, ref api.Ref) *gateway.Route {
	r, _ := v.Get(ref).(*gateway.Route)
	return r
}

// rootsOf returns the gateways and services that a route or listener set is under, each once.
func rootsOf(v *snapshot.View, o snapshot.Object) []root {
	var out orderedSet[root]
	switch o := o.(type) {
	case *gateway.ListenerSet:
		out.add(root{gateway: v.Gateway(o.GatewayNamespace, o.GatewayName)})
	case *gateway.Route:
		for _, parent := range o.Parents {
			if g := v.GatewayOf(parent); g != nil {
				out.add(root{gateway: g})
			} else {
				out.add(rootAt(v, parent.Ref()))
			}
		}
	}
	return slices.DeleteFunc(out.list, root.isZero)
}
