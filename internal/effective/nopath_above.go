package effective

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// isBackend reports whether the target is of a kind to which routes send requests: a
// Service, or an unsupported kind.
func (reason *noPathReason) isBackend() bool {
	kind := reason.target.Ref.PolicyKind()
	return kind == api.PolicyKind{Kind: gateway.KindService} ||
		!gateway.Known(kind) && kind != api.PolicyKind{Kind: gateway.KindMesh}
}

// backend returns why no path goes through the target, to which routes send requests or
// which they have as a parent. It does not name routes of other namespaces.
func (reason *noPathReason) backend() string {
	why, own := "no route "+reason.refersTo(), ""
	for r, sends := range reason.referringRoutes() {
		if sends && !reaches(reason.view, r, reason.target.Ref) {
			why = fmt.Sprintf("no ReferenceGrant in namespace %s allows routes of other namespaces to refer to %s", reason.target.Ref.Namespace, reason.target.Ref)
			continue
		}
		not := reason.route(r, policykind.Target{Ref: r.Ref()})
		switch {
		case not == "":
			return ""
		case r.Namespace == reason.target.Ref.Namespace:
			own = cmp.Or(own, not)
		default:
			why = fmt.Sprintf("no route that %s is attached to a %s and has anything that policies of kind %s apply to", reason.refersTo(), reason.rootKinds(), reason.kind.Kind)
		}
	}
	return cmp.Or(own, why)
}

// refersTo describes how routes refer to the target.
func (reason *noPathReason) refersTo() string {
	switch {
	case !reason.isParent():
		return fmt.Sprintf("sends requests to %s", reason.target)
	case reason.end() < gateway.LevelBackend:
		return fmt.Sprintf("has %s as its parent", reason.target)
	default:
		return fmt.Sprintf("has %s as its parent or sends requests to it", reason.target)
	}
}

// isParent reports whether paths of the kind start at the target.
func (reason *noPathReason) isParent() bool {
	return reason.shape.mesh && reason.target.Ref.PolicyKind() == api.PolicyKind{Kind: gateway.KindService}
}

// referringRoutes yields the routes that refer to the target, and whether they do so by
// sending requests to it.
func (reason *noPathReason) referringRoutes() iter.Seq2[*gateway.Route, bool] {
	return func(yield func(*gateway.Route, bool) bool) {
		if s, ok := reason.view.Get(reason.target.Ref).(*gateway.Service); ok && reason.isParent() {
			for r := range reason.view.RoutesOf(reason.target.Ref) {
				if reason.shape.includesRoute(r.Kind) && len(r.PortsOf(s)) > 0 && !yield(r, false) {
					return
				}
			}
		}
		if reason.end() < gateway.LevelBackend {
			return
		}
		for r := range reason.view.RoutesTo(reason.target.Ref) {
			if reason.shape.includesRoute(r.Kind) && slices.ContainsFunc(r.Rules, reason.sendsToTarget) && !yield(r, true) {
				return
			}
		}
	}
}

// sendsToTarget reports whether a rule sends requests to the target, and to its port.
func (reason *noPathReason) sendsToTarget(rule gateway.Rule) bool {
	return slices.ContainsFunc(rule.Backends, func(b gateway.Backend) bool {
		return b.Object == reason.target.Ref && (reason.target.Whole() || onPort(reason.view, false, &reason.target, b.Object, b.Port))
	})
}

// listenerSet returns why no path goes through the target, which is a listener set.
func (reason *noPathReason) listenerSet(s *gateway.ListenerSet) string {
	if why := reason.unattachedSet(s); why != "" {
		return reason.notAttached(s.Ref(), why)
	}
	return reason.rootOrAbove()
}

// rootOrAbove returns why no path goes through the target, which is a root or above
// roots.
func (reason *noPathReason) rootOrAbove() string {
	name := reason.target.Ref.Name
	switch reason.target.Ref.Kind {
	case gateway.KindGateway, gateway.KindListenerSet, gateway.KindXListenerSet:
		return reason.noRouteAttached("to "+reason.target.String(), reason.gateways())
	case gateway.KindGatewayClass:
		return reason.noRouteAttached("to any Gateway of GatewayClass "+name, reason.gateways())
	case gateway.KindNamespace:
		return reason.namespace(name)
	default: // the mesh
		return reason.noRouteAttached("to any "+reason.rootKinds(), reason.gateways())
	}
}

func (reason *noPathReason) namespace(name string) string {
	var why []string
	if reason.shape.levels.has(gateway.LevelGatewayNamespace) {
		why = append(why, reason.noRouteAttached("to any Gateway in namespace "+name, reason.gateways()))
	}
	if reason.shape.levels.has(gateway.LevelServiceNamespace) {
		why = append(why, fmt.Sprintf("no %s has a Service in namespace %s as its parent", reason.routeKinds(), name))
	}
	if reason.shape.levels.has(gateway.LevelRouteNamespace) {
		why = append(why, fmt.Sprintf("no %s in namespace %s is attached to any %s", reason.routeKinds(), name, reason.rootKinds()))
	}
	return strings.Join(why, ", and ")
}

// noRouteAttached returns that no route is attached to the gateways, or to the section of
// one, or that the attached ones lack something.
func (reason *noPathReason) noRouteAttached(to string, gateways iter.Seq[*gateway.Gateway]) string {
	if reason.end() < gateway.LevelRoute {
		return "no listener belongs " + to
	}
	for g := range gateways {
		switch {
		case !reason.hasRoute(g):
		case reason.consumer:
			return ""
		default:
			return fmt.Sprintf("no %s that is attached %s has anything that policies of kind %s apply to", reason.routeKinds(), to, reason.kind.Kind)
		}
	}
	return fmt.Sprintf("no %s is attached %s", reason.routeKinds(), to)
}

// routeKinds names the routes that paths of the kind go through.
func (reason *noPathReason) routeKinds() string {
	if reason.shape.routes == nil {
		return "route"
	}
	return strings.Join(slices.Sorted(slices.Values(reason.shape.routes)), " or ")
}

// gateways yields the gateways that the target stands for.
func (reason *noPathReason) gateways() iter.Seq[*gateway.Gateway] {
	ref := reason.target.Ref
	switch o := reason.view.Get(ref).(type) {
	case *gateway.Gateway:
		return single(o)
	case *gateway.ListenerSet:
		return single(reason.view.Gateway(o.GatewayNamespace, o.GatewayName))
	}
	if ref.Kind == gateway.KindGatewayClass {
		return reason.view.GatewaysOf(ref.Name)
	}
	return func(yield func(*gateway.Gateway) bool) {
		for g := range reason.view.Gateways() {
			if (ref.Kind != gateway.KindNamespace || g.Namespace == ref.Name) && !yield(g) {
				return
			}
		}
	}
}

func single[T any](v T) iter.Seq[T] { return func(yield func(T) bool) { yield(v) } }

// hasRoute reports whether a route that the kind applies to is attached to a gateway, by
// a listener that the target selects.
func (reason *noPathReason) hasRoute(g *gateway.Gateway) bool {
	at := root{gateway: g}
	listeners := slices.DeleteFunc(at.listeners(reason.view), func(l gateway.ListenerMatch) bool { return !reason.targetsListener(l) })
	for r := range at.routes(reason.view) {
		if reason.shape.includesRoute(r.Kind) && slices.ContainsFunc(listeners, func(l gateway.ListenerMatch) bool { return l.Accepts(r, reason.view.NamespaceLabels(r.Namespace)) }) {
			return true
		}
	}
	return false
}

// targetsListener reports whether a policy on the target applies to a listener.
func (reason *noPathReason) targetsListener(l gateway.ListenerMatch) bool {
	switch reason.view.Get(reason.target.Ref).(type) {
	case *gateway.Gateway:
		return reason.target.Whole() || ofGateway(reason.kind, &reason.target, &l)
	case *gateway.ListenerSet:
		return l.Set != nil && l.Set.Ref() == reason.target.Ref && onListener(&reason.target, l.Listener)
	default:
		return true
	}
}
