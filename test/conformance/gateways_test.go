package conformance

import (
	"fmt"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// listenersOf returns the listeners of a gateway: its own and those of its sets.
func listenersOf(v *snapshot.View, g *gateway.Gateway) []gateway.ListenerMatch {
	out := gateway.OwnListeners(g)
	for s := range v.SetsOf(g) {
		out = append(out, gateway.SetListeners(g, s, v.NamespaceLabels(s.Namespace))...)
	}
	return out
}

// routesOf returns the routes with the gateway, or one of its sets, as a parent, each
// once.
func routesOf(v *snapshot.View, g *gateway.Gateway) []*gateway.Route {
	out := slices.Collect(v.RoutesOf(g.Ref()))
	for s := range v.SetsOf(g) {
		for r := range v.RoutesOf(s.Ref()) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// attached returns the number of routes on a listener.
func attached(v *snapshot.View, l gateway.ListenerMatch) int32 {
	var n int32
	for _, r := range routesOf(v, l.Gateway) {
		if l.Accepts(r, v.NamespaceLabels(r.Namespace)) {
			n++
		}
	}
	return n
}

// rejectReason returns why a parent does not accept a route, empty if it does.
func rejectReason(v *snapshot.View, r *gateway.Route, p gateway.Parent) string {
	labels := v.NamespaceLabels(r.Namespace)
	switch o := v.Get(p.Ref()).(type) {
	case *gateway.Gateway:
		return gateway.RejectReason(r, p, o.Listeners, labels)
	case *gateway.ListenerSet:
		if !allowed(v, o) {
			return fmt.Sprintf("%s is not attached", o.Ref())
		}
		return gateway.RejectReason(r, p, o.Listeners, labels)
	case *gateway.Service:
		if len((&gateway.Route{Namespace: r.Namespace, Parents: []gateway.Parent{p}}).PortsOf(o)) == 0 {
			return fmt.Sprintf("%s has no such port", o.Ref())
		}
		return ""
	default:
		return "it does not exist"
	}
}

// allowed reports whether the gateway of a listener set allows it.
func allowed(v *snapshot.View, s *gateway.ListenerSet) bool {
	g := v.Gateway(s.GatewayNamespace, s.GatewayName)
	return g != nil && gateway.SetListeners(g, s, v.NamespaceLabels(s.Namespace)) != nil
}

// resolve returns why a backend is not available to a route, in the terms of the
// condition ResolvedRefs, empty if it is.
func resolve(v *snapshot.View, r *gateway.Route, b gateway.Backend) string {
	switch {
	case b.Object.Group != "" || b.Object.Kind != gateway.KindService:
		return "InvalidKind"
	case b.Object.Namespace != r.Namespace && !granted(v, r, b):
		return "RefNotPermitted"
	case v.Get(b.Object) == nil:
		return "BackendNotFound"
	default:
		return ""
	}
}

// granted reports whether a route is allowed to refer to a backend in another namespace:
// by a ReferenceGrant, or since the backend is its parent in a mesh.
func granted(v *snapshot.View, r *gateway.Route, b gateway.Backend) bool {
	stored, ok := v.Get(r.Ref()).(*gateway.Route)
	if ok && slices.ContainsFunc(stored.Parents, func(p gateway.Parent) bool { return p.Ref() == b.Object }) {
		return true
	}
	for o := range v.In(gateway.KindOf(gateway.KindReferenceGrant), b.Object.Namespace) {
		if g, ok := o.(*gateway.Grant); ok && g.Allows(r.Ref().PolicyKind(), r.Namespace, b.Object) {
			return true
		}
	}
	return false
}

// unresolved is resolve for the first backend of a route that is not available.
func unresolved(v *snapshot.View, r *gateway.Route) string {
	for i := range r.Rules {
		for _, b := range r.Rules[i].Backends {
			if reason := resolve(v, r, b); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// hostOnly returns a host without its port.
func hostOnly(host string) string {
	if i := strings.LastIndex(host, ":"); i > strings.LastIndex(host, "]") {
		return host[:i]
	}
	return host
}
