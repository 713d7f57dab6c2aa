package effective

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// isBackend reports whether the target is of a kind to which routes send requests: a
// Service, or an unsupported kind.
func (d *noPathReason) isBackend() bool {
	kind := d.target.Ref.PolicyKind()
	return kind == api.PolicyKind{Kind: gateway.KindService} ||
		!gateway.Known(kind) && kind != api.PolicyKind{Kind: gateway.KindMesh}
}

// backend returns why no path goes through the target, to which routes send requests or
// which they have as a parent. It does not name routes of other namespaces.
func (d *noPathReason) backend() string {
	why, own := "no route "+d.refersTo(), ""
	for r, sends := range d.referringRoutes() {
		if sends && !reaches(d.view, r, d.target.Ref) {
			why = fmt.Sprintf("no ReferenceGrant in namespace %s allows routes of other namespaces to refer to %s", d.target.Ref.Namespace, d.target.Ref)
			continue
		}
		not := d.route(r, "")
		switch {
		case not == "":
			return ""
		case r.Namespace == d.target.Ref.Namespace:
			own = cmp.Or(own, not)
		default:
			why = fmt.Sprintf("no route that %s is attached to a %s and has anything that policies of kind %s apply to", d.refersTo(), d.rootKinds(), d.kind.Kind)
		}
	}
	return cmp.Or(own, why)
}

// refersTo describes how routes refer to the target.
func (d *noPathReason) refersTo() string {
	switch {
	case !d.isParent():
		return fmt.Sprintf("sends requests to %s", d.target)
	case d.end() < gateway.LevelBackend:
		return fmt.Sprintf("has %s as its parent", d.target)
	default:
		return fmt.Sprintf("has %s as its parent or sends requests to it", d.target)
	}
}

// isParent reports whether paths of the kind start at the target.
func (d *noPathReason) isParent() bool {
	return d.shape.mesh && d.target.Ref.PolicyKind() == api.PolicyKind{Kind: gateway.KindService}
}

// referringRoutes yields the routes that refer to the target, and whether they do so by
// sending requests to it.
func (d *noPathReason) referringRoutes() iter.Seq2[*gateway.Route, bool] {
	return func(yield func(*gateway.Route, bool) bool) {
		if s, ok := d.view.Get(d.target.Ref).(*gateway.Service); ok && d.isParent() {
			for r := range d.view.RoutesOf(d.target.Ref) {
				if d.shape.includesRoute(r.Kind) && len(r.PortsOf(s)) > 0 && !yield(r, false) {
					return
				}
			}
		}
		if d.end() < gateway.LevelBackend {
			return
		}
		for r := range d.view.RoutesTo(d.target.Ref) {
			if d.shape.includesRoute(r.Kind) && slices.ContainsFunc(r.Rules, d.sendsToTarget) && !yield(r, true) {
				return
			}
		}
	}
}

// sendsToTarget reports whether a rule sends requests to the target, and to its port.
func (d *noPathReason) sendsToTarget(rule gateway.Rule) bool {
	k := kindWalk{view: d.view}
	return slices.ContainsFunc(rule.Backends, func(b gateway.Backend) bool {
		return b.Object == d.target.Ref && (d.target.Whole() || k.onPort(&d.target, b.Object, b.Port))
	})
}

// listenerSet returns why no path goes through the target, which is a listener set.
func (d *noPathReason) listenerSet(s *gateway.ListenerSet) string {
	if why := d.unattachedSet(s); why != "" {
		return d.notAttached(s.Ref(), why)
	}
	return d.rootOrAbove()
}

// rootOrAbove returns why no path goes through the target, which is a root or above
// roots.
func (d *noPathReason) rootOrAbove() string {
	name := d.target.Ref.Name
	switch d.target.Ref.Kind {
	case gateway.KindGateway, gateway.KindListenerSet, gateway.KindXListenerSet:
		return d.noRouteAttached("to "+d.target.String(), d.gateways())
	case gateway.KindGatewayClass:
		return d.noRouteAttached("to any Gateway of GatewayClass "+name, d.gateways())
	case gateway.KindNamespace:
		return d.namespace(name)
	default: // the mesh
		return d.noRouteAttached("to any "+d.rootKinds(), d.gateways())
	}
}

func (d *noPathReason) namespace(name string) string {
	var why []string
	if d.shape.levels[gateway.LevelGatewayNamespace] {
		why = append(why, d.noRouteAttached("to any Gateway in namespace "+name, d.gateways()))
	}
	if d.shape.levels[gateway.LevelServiceNamespace] {
		why = append(why, fmt.Sprintf("no %s has a Service in namespace %s as its parent", d.routeKinds(), name))
	}
	if d.shape.levels[gateway.LevelRouteNamespace] {
		why = append(why, fmt.Sprintf("no %s in namespace %s is attached to any %s", d.routeKinds(), name, d.rootKinds()))
	}
	return strings.Join(why, ", and ")
}

// noRouteAttached returns that no route is attached to the gateways, or to the section of
// one, or that the attached ones lack something.
func (d *noPathReason) noRouteAttached(to string, gateways iter.Seq[*gateway.Gateway]) string {
	if d.end() < gateway.LevelRoute {
		return "no listener belongs " + to
	}
	for g := range gateways {
		switch {
		case !d.hasRoute(g):
		case d.consumer:
			return ""
		default:
			return fmt.Sprintf("no %s that is attached %s has anything that policies of kind %s apply to", d.routeKinds(), to, d.kind.Kind)
		}
	}
	return fmt.Sprintf("no %s is attached %s", d.routeKinds(), to)
}

// routeKinds names the routes that paths of the kind go through.
func (d *noPathReason) routeKinds() string {
	if d.shape.routes == nil {
		return "route"
	}
	return strings.Join(slices.Sorted(slices.Values(d.shape.routes)), " or ")
}

// gateways yields the gateways that the target stands for.
func (d *noPathReason) gateways() iter.Seq[*gateway.Gateway] {
	ref := d.target.Ref
	switch o := d.view.Get(ref).(type) {
	case *gateway.Gateway:
		return single(o)
	case *gateway.ListenerSet:
		return single(d.view.Gateway(o.GatewayNamespace, o.GatewayName))
	}
	if ref.Kind == gateway.KindGatewayClass {
		return d.view.GatewaysOf(ref.Name)
	}
	return func(yield func(*gateway.Gateway) bool) {
		for g := range d.view.Gateways() {
			if (ref.Kind != gateway.KindNamespace || g.Namespace == ref.Name) && !yield(g) {
				return
			}
		}
	}
}

// hasRoute reports whether a route that the kind applies to is attached to a gateway, by
// a listener that the target selects.
func (d *noPathReason) hasRoute(g *gateway.Gateway) bool {
	at := root{gateway: g}
	listeners := slices.DeleteFunc(d.listeners(at), func(l gateway.ListenerMatch) bool { return !d.targetsListener(l) })
	for r := range d.routesUnder(at) {
		if d.shape.includesRoute(r.Kind) && slices.ContainsFunc(listeners, func(l gateway.ListenerMatch) bool { return l.Accepts(r, d.view.NamespaceLabels(r.Namespace)) }) {
			return true
		}
	}
	return false
}

// targetsListener reports whether a policy on the target applies to a listener.
func (d *noPathReason) targetsListener(l gateway.ListenerMatch) bool {
	switch d.view.Get(d.target.Ref).(type) {
	case *gateway.Gateway:
		return d.target.Whole() || l.Set == nil && onListener(&d.target, l.Listener)
	case *gateway.ListenerSet:
		return l.Set != nil && l.Set.Ref() == d.target.Ref && onListener(&d.target, l.Listener)
	default:
		return true
	}
}
