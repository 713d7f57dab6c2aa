package guard

import (
	"iter"
	"reflect"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// reroutedObject is what a write changes about where requests go: routes, of which other
// matches, hostnames or listeners may count after it. Of a gateway, it has no routes: at says
// which have other listeners.
type reroutedObject struct {
	entries       []api.Ref // gateways, and Services in a mesh, before and after
	before, after []*gateway.Route
}

// rerouted returns what the write changes about where requests go; the zero value if
// nothing.
func (ev *requests) rerouted() reroutedObject {
	if ev.reroutes == nil {
		ev.reroutes = new(ev.findRerouted())
	}
	return *ev.reroutes
}

// findRerouted is rerouted without its memo.
func (ev *requests) findRerouted() reroutedObject {
	ref := ev.change.Object().Ref()
	before, after := ev.before.Get(ref), ev.after.Get(ref)
	switch ev.change.Object().(type) {
	case *gateway.Route:
		b, _ := before.(*gateway.Route)
		a, _ := after.(*gateway.Route)
		if b != nil && a != nil && (b == a || b.SameRequests(a)) {
			return reroutedObject{}
		}
		return ev.reroutedRoutes(nonNil(b), nonNil(a))
	case *gateway.Gateway:
		b, _ := before.(*gateway.Gateway)
		a, _ := after.(*gateway.Gateway)
		if b == nil || a == nil || reflect.DeepEqual(b.Listeners, a.Listeners) && reflect.DeepEqual(b.Sets, a.Sets) {
			return reroutedObject{} // a gateway that is created or deleted moves nothing to another one
		}
		return reroutedObject{entries: []api.Ref{ref}}
	case *gateway.ListenerSet:
		b, _ := before.(*gateway.ListenerSet)
		a, _ := after.(*gateway.ListenerSet)
		if b != nil && a != nil && b.Created == a.Created && reflect.DeepEqual(b.Listeners, a.Listeners) && b.GatewayNamespace == a.GatewayNamespace && b.GatewayName == a.GatewayName {
			return reroutedObject{}
		}
		return reroutedObject{entries: ev.gatewaysOfSets(), before: slices.Collect(ev.before.RoutesOf(ref)), after: slices.Collect(ev.after.RoutesOf(ref))}
	case *gateway.Namespace:
		b, _ := before.(*gateway.Namespace)
		a, _ := after.(*gateway.Namespace)
		if b == nil || a != nil && reflect.DeepEqual(b.Labels, a.Labels) {
			return reroutedObject{}
		}
		return ev.reroutedRoutes(slices.Collect(routesOfNamespace(ev.before, b.Name)), slices.Collect(routesOfNamespace(ev.after, b.Name)))
	case *gateway.Service:
		b, _ := before.(*gateway.Service)
		a, _ := after.(*gateway.Service)
		if b == nil || a == nil || slices.Equal(b.Ports, a.Ports) {
			return reroutedObject{}
		}
		return reroutedObject{entries: []api.Ref{ref}, before: slices.Collect(ev.before.RoutesOf(ref)), after: slices.Collect(ev.after.RoutesOf(ref))}
	case *policykind.Definition:
		return ev.reroutedKind()
	default:
		return reroutedObject{}
	}
}

// reroutedKind returns all routes where the definition of a kind is written by which
// requests are routed: the kind may be read in another way.
func (ev *requests) reroutedKind() reroutedObject {
	kind := ev.change.Object().(*policykind.Definition).Defines()
	if !slices.Contains(gateway.GatewayKinds, kind.Kind) || kind != gateway.KindOf(kind.Kind) {
		return reroutedObject{}
	}
	all := func(v *snapshot.View) (out []*gateway.Route) {
		for _, k := range gateway.RouteKinds {
			for o := range v.Objects(gateway.KindOf(k)) {
				if r, ok := o.(*gateway.Route); ok {
					out = append(out, r)
				}
			}
		}
		return out
	}
	return ev.reroutedRoutes(all(ev.before), all(ev.after))
}

// reroutedRoutes returns routes that are changed themselves, or whose listeners are, with
// their gateways and Services. A listener set without routes is at its gateway, too: the
// listeners of others may conflict with its own.
func (ev *requests) reroutedRoutes(before, after []*gateway.Route) reroutedObject {
	re := reroutedObject{entries: ev.gatewaysOfSets(), before: before, after: after}
	add := func(v *snapshot.View, routes []*gateway.Route) {
		for _, r := range routes {
			for _, p := range r.Parents {
				entry := p.Ref()
				if g := v.GatewayOf(p); g != nil {
					entry = g.Ref()
				} else if p.Kind != gateway.KindService {
					continue
				}
				if !slices.Contains(re.entries, entry) {
					re.entries = append(re.entries, entry)
				}
			}
		}
	}
	add(ev.before, before)
	add(ev.after, after)
	return re
}

// gatewaysOfSets names the gateways of a listener set that is written, or of those in a
// namespace that is.
func (ev *requests) gatewaysOfSets() []api.Ref {
	var out []api.Ref
	for _, o := range []snapshot.Object{ev.change.Before, ev.change.After} {
		switch o := o.(type) {
		case *gateway.ListenerSet:
			out = append(out, gatewayRefOf(o))
		case *gateway.Namespace:
			for _, v := range []*snapshot.View{ev.before, ev.after} {
				for _, kind := range []string{gateway.KindListenerSet, gateway.KindXListenerSet} {
					for set := range v.In(gateway.KindOf(kind), o.Name) {
						out = append(out, gatewayRefOf(set.(*gateway.ListenerSet)))
					}
				}
			}
		}
	}
	slices.SortFunc(out, api.CompareRefs)
	return slices.Compact(out)
}

// gatewayRefOf names the gateway of a listener set.
func gatewayRefOf(s *gateway.ListenerSet) api.Ref {
	return (&gateway.Gateway{Namespace: s.GatewayNamespace, Name: s.GatewayName}).Ref()
}

func nonNil(r *gateway.Route) []*gateway.Route {
	if r == nil {
		return nil
	}
	return []*gateway.Route{r}
}

// reroutedAt returns what the write changes at a gateway or Service, with the routes of which
// a listener is changed there.
func (ev *requests) reroutedAt(at *gatewayRouters, re reroutedObject) reroutedObject {
	if at.mesh {
		return re
	}
	for _, parent := range slices.Concat(at.before.ListenersGone(at.after), at.after.ListenersGone(at.before)) {
		re.before, re.after = appendNew(re.before, ev.before.RoutesOf(parent)), appendNew(re.after, ev.after.RoutesOf(parent))
	}
	return re
}

// appendNew returns a list with those of others that are not in it.
func appendNew[T comparable](list []T, more iter.Seq[T]) []T {
	out := slices.Clone(list)
	for x := range more {
		if !slices.Contains(list, x) {
			out = append(out, x)
		}
	}
	return out
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
