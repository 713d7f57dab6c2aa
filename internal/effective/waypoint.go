package effective

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// isWaypoint reports whether a gateway is a waypoint for policies of a kind.
func isWaypoint(k *policykind.Kind, g *gateway.Gateway) bool {
	w := k.Waypoints
	return w != nil && (slices.Contains(w.Classes, g.Class) || waypointListener(w, g) != nil)
}

func waypointListener(w *api.ProfileWaypoints, g *gateway.Gateway) *gateway.Listener {
	if i := slices.IndexFunc(g.Listeners, func(l gateway.Listener) bool { return l.Protocol == w.Protocol }); i >= 0 {
		return &g.Listeners[i]
	}
	return nil
}

// waypointName returns the gateway that the labels of a service, or else of its namespace,
// name as its waypoint.
func waypointName(v *snapshot.View, w *api.ProfileWaypoints, s *gateway.Service) (namespace, name string, ok bool) {
	set := s.Labels
	if _, own := set[w.Label]; !own {
		set = v.NamespaceLabels(s.Namespace)
	}
	name, ok = set[w.Label]
	if !ok || name == w.None {
		return "", "", false
	}
	if namespace, ok := set[w.NamespaceLabel]; ok {
		return namespace, name, true
	}
	return s.Namespace, name, true
}

// waypointOf returns the waypoint of a service, or nil and why it has none.
func waypointOf(v *snapshot.View, w *api.ProfileWaypoints, s *gateway.Service) (g *gateway.Gateway, why string) {
	namespace, name, ok := waypointName(v, w, s)
	if !ok {
		return nil, fmt.Sprintf("label %s of %s or of its namespace names none", w.Label, s.Ref())
	}
	g = v.Gateway(namespace, name)
	switch {
	case g == nil:
		return nil, fmt.Sprintf("Gateway %s/%s does not exist", namespace, name)
	case !admitsService(v, w, g, s.Namespace):
		return nil, fmt.Sprintf("%s does not admit Services of namespace %s", g.Ref(), s.Namespace)
	case !servesServices(v, w, g):
		return nil, fmt.Sprintf("label %s of %s or of its GatewayClass excludes Services", w.Purpose.Label, g.Ref())
	default:
		return g, ""
	}
}

func admitsService(v *snapshot.View, w *api.ProfileWaypoints, g *gateway.Gateway, namespace string) bool {
	l := waypointListener(w, g)
	if l == nil {
		return g.Namespace == namespace
	}
	return l.Namespaces.Allows(g.Namespace, namespace, v.NamespaceLabels(namespace))
}

func servesServices(v *snapshot.View, w *api.ProfileWaypoints, g *gateway.Gateway) bool {
	if w.Purpose == nil {
		return true
	}
	value, ok := g.Labels[w.Purpose.Label]
	if class, is := v.Get((&gateway.Class{Name: g.Class}).Ref()).(*gateway.Class); !ok && is {
		value, ok = class.Labels[w.Purpose.Label]
	}
	return !ok || slices.Contains(w.Purpose.Values, value)
}

// waypointsOf returns the definitions of waypoints of all kinds, those that find the same
// gateways once.
func waypointsOf(v *snapshot.View) []*api.ProfileWaypoints {
	var out []*api.ProfileWaypoints
	for _, k := range v.Kinds() {
		w := k.Waypoints
		if w != nil && !slices.ContainsFunc(out, func(o *api.ProfileWaypoints) bool {
			return o.Label == w.Label && o.NamespaceLabel == w.NamespaceLabel && o.None == w.None && o.Protocol == w.Protocol
		}) {
			out = append(out, w)
		}
	}
	return out
}
