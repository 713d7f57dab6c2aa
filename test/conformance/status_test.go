package conformance

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// setStatus sets the status of an object as a controller would that attaches routes as
// internal/gateway does.
func (c *cluster) setStatus(o client.Object) {
	v := c.now()
	switch o := o.(type) {
	case *gatewayv1.GatewayClass:
		o.Status.Conditions = []metav1.Condition{condition(o, "Accepted", "")}
	case *gatewayv1.Gateway:
		c.setGatewayStatus(v, o)
	case *gatewayv1.ListenerSet:
		setListenerSetStatus(v, o)
	case *gatewayv1.HTTPRoute:
		o.Status.Parents = parents(v, gateway.KindHTTPRoute, o, o.Spec.ParentRefs)
	case *gatewayv1.GRPCRoute:
		o.Status.Parents = parents(v, gateway.KindGRPCRoute, o, o.Spec.ParentRefs)
	case *gatewayv1.TLSRoute:
		o.Status.Parents = parents(v, gateway.KindTLSRoute, o, o.Spec.ParentRefs)
	case *gatewayv1.TCPRoute:
		o.Status.Parents = parents(v, gateway.KindTCPRoute, o, o.Spec.ParentRefs)
	case *gatewayv1.UDPRoute:
		o.Status.Parents = parents(v, gateway.KindUDPRoute, o, o.Spec.ParentRefs)
	}
}

// condition returns a condition that is true, or false for a reason.
func condition(o client.Object, kind, reason string) metav1.Condition {
	out := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: o.GetGeneration()}
	if reason != "" {
		out.Status, out.Reason = metav1.ConditionFalse, reason
	}
	return out
}

func (c *cluster) setGatewayStatus(v *snapshot.View, o *gatewayv1.Gateway) {
	g := v.Gateway(o.Namespace, o.Name)
	if g == nil {
		return
	}
	o.Status.Conditions = []metav1.Condition{condition(o, "Accepted", ""), condition(o, "Programmed", "")}
	o.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Type: new(gatewayv1.IPAddressType), Value: c.net.address(g.Ref())}}
	var sets int32
	for s := range v.SetsOf(g) {
		if allowed(v, s) {
			sets++
		}
	}
	o.Status.AttachedListenerSets = &sets
	o.Status.Listeners = nil
	for i, l := range gateway.OwnListeners(g) {
		kinds, conditions := listenerStatus(o, l, o.Spec.Listeners[i].AllowedRoutes)
		if !c.hasCertificates(o.Spec.Listeners[i].TLS, o.Namespace) {
			conditions = []metav1.Condition{condition(o, "Programmed", "Invalid"), condition(o, "ResolvedRefs", "InvalidCertificateRef")}
		}
		o.Status.Listeners = append(o.Status.Listeners, gatewayv1.ListenerStatus{
			Name: gatewayv1.SectionName(l.Listener.Name), SupportedKinds: kinds, AttachedRoutes: attached(v, l), Conditions: conditions,
		})
	}
}

// hasCertificates reports whether the certificates of a listener exist in its namespace.
func (c *cluster) hasCertificates(tls *gatewayv1.ListenerTLSConfig, namespace string) bool {
	return tls == nil || !slices.ContainsFunc(tls.CertificateRefs, func(r gatewayv1.SecretObjectReference) bool {
		return c.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: string(r.Name)}, &corev1.Secret{}) != nil
	})
}

func setListenerSetStatus(v *snapshot.View, o *gatewayv1.ListenerSet) {
	s, ok := v.Get(api.Ref{Group: api.GatewayGroup, Kind: gateway.KindListenerSet, Namespace: o.Namespace, Name: o.Name}).(*gateway.ListenerSet)
	if !ok {
		return
	}
	o.Status.Listeners = nil
	if !allowed(v, s) {
		o.Status.Conditions = []metav1.Condition{condition(o, "Accepted", "NotAllowed"), condition(o, "Programmed", "NotAllowed")}
		return
	}
	o.Status.Conditions = []metav1.Condition{condition(o, "Accepted", ""), condition(o, "Programmed", "")}
	g := v.Gateway(s.GatewayNamespace, s.GatewayName)
	for i := range s.Listeners {
		l := gateway.ListenerMatch{Gateway: g, Set: s, Listener: &s.Listeners[i]}
		kinds, conditions := listenerStatus(o, l, o.Spec.Listeners[i].AllowedRoutes)
		o.Status.Listeners = append(o.Status.Listeners, gatewayv1.ListenerEntryStatus{
			Name: gatewayv1.SectionName(l.Listener.Name), SupportedKinds: kinds, AttachedRoutes: attached(v, l), Conditions: conditions,
		})
	}
}

// listenerStatus returns the kinds of routes that a listener allows, and its conditions.
func listenerStatus(o client.Object, l gateway.ListenerMatch, routes *gatewayv1.AllowedRoutes) ([]gatewayv1.RouteGroupKind, []metav1.Condition) {
	var kinds []gatewayv1.RouteGroupKind
	for _, k := range l.Listener.Kinds {
		kinds = append(kinds, gatewayv1.RouteGroupKind{Group: new(gatewayv1.Group(api.GatewayGroup)), Kind: gatewayv1.Kind(k)})
	}
	invalid := ""
	if routes != nil && len(routes.Kinds) > len(kinds) {
		invalid = string(gatewayv1.ListenerReasonInvalidRouteKinds)
	}
	conditions := []metav1.Condition{condition(o, "Accepted", ""), condition(o, "Programmed", invalid), condition(o, "ResolvedRefs", invalid)}
	return kinds, conditions
}

// parents returns the status of a route for each of its parentRefs.
func parents(v *snapshot.View, kind string, o client.Object, refs []gatewayv1.ParentReference) []gatewayv1.RouteParentStatus {
	r, ok := v.Get(api.Ref{Group: api.GatewayGroup, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}).(*gateway.Route)
	if !ok {
		return nil
	}
	var out []gatewayv1.RouteParentStatus
	for i, ref := range refs {
		if len(r.Parents) != len(refs) {
			break // a parent of an unsupported kind
		}
		ref.Group = cmp.Or(ref.Group, new(gatewayv1.Group(api.GatewayGroup)))
		ref.Kind = cmp.Or(ref.Kind, new(gatewayv1.Kind(gateway.KindGateway)))
		out = append(out, gatewayv1.RouteParentStatus{
			ParentRef: ref, ControllerName: controllerName,
			Conditions: []metav1.Condition{
				condition(o, "Accepted", acceptedReason(rejectReason(v, r, r.Parents[i]))), condition(o, "ResolvedRefs", unresolved(v, r)),
			},
		})
	}
	return out
}

// acceptedReason returns the reason of the condition Accepted for a text of
// gateway.RejectReason.
func acceptedReason(text string) string {
	switch {
	case text == "":
		return ""
	case strings.Contains(text, " allows routes "):
		return string(gatewayv1.RouteReasonNotAllowedByListeners)
	case strings.Contains(text, " a hostname that intersects "):
		return string(gatewayv1.RouteReasonNoMatchingListenerHostname)
	default:
		return string(gatewayv1.RouteReasonNoMatchingParent)
	}
}
