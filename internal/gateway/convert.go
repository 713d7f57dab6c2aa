package gateway

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// FromNamespace converts a Namespace. It has the label with its name even if the
// object comes from a file (SEMANTICS section 7).
func FromNamespace(n *corev1.Namespace) *Namespace {
	set := labels.Merge(n.Labels, labels.Set{corev1.LabelMetadataName: n.Name})
	return &Namespace{Name: n.Name, Labels: set, Terminating: n.DeletionTimestamp != nil, Deleting: isDeleting(&n.ObjectMeta)}
}

// isDeleting reports whether an object is being deleted, or will be by garbage
// collection with an owner: no write is evaluated when that happens.
func isDeleting(m *metav1.ObjectMeta) bool {
	return m.DeletionTimestamp != nil || len(m.OwnerReferences) > 0
}

// FromGatewayClass converts a GatewayClass.
func FromGatewayClass(c *gatewayv1.GatewayClass) *Class {
	out := &Class{Name: c.Name, Labels: c.Labels, Controller: intern(string(c.Spec.ControllerName)), Deleting: isDeleting(&c.ObjectMeta)}
	if p := c.Spec.ParametersRef; p != nil {
		out.Parameters = api.Ref{Group: string(p.Group), Kind: string(p.Kind), Namespace: string(ptr.Deref(p.Namespace, "")), Name: p.Name}
	}
	return out
}

// FromGateway converts a Gateway, defaulted as by the API server. Without a creation time it is
// the newest.
func FromGateway(g *gatewayv1.Gateway) *Gateway {
	out := &Gateway{
		Namespace: intern(namespace(g.Namespace)), Name: intern(g.Name), Labels: g.Labels,
		Created: created(g.CreationTimestamp, Newest), Class: string(g.Spec.GatewayClassName),
	}
	for i := range g.Spec.Listeners {
		out.Listeners = append(out.Listeners, listener(&g.Spec.Listeners[i], g.Namespace))
	}
	if i := g.Spec.Infrastructure; i != nil && i.ParametersRef != nil {
		p := i.ParametersRef
		out.Parameters = api.Ref{Group: string(p.Group), Kind: string(p.Kind), Namespace: out.Namespace, Name: p.Name}
	}
	if a := g.Spec.AllowedListeners; a != nil && a.Namespaces != nil && a.Namespaces.From != nil {
		out.Sets = namespaceRule(*a.Namespaces.From, a.Namespaces.Selector)
	}
	return out
}

// FromListenerSet converts a ListenerSet, defaulted as by the API server. Without a
// creation time it is the newest.
func FromListenerSet(s *gatewayv1.ListenerSet) *ListenerSet {
	out := &ListenerSet{
		Namespace: intern(namespace(s.Namespace)), Name: intern(s.Name), Labels: s.Labels,
		Created: created(s.CreationTimestamp, Newest),
	}
	p := &s.Spec.ParentRef
	_, of := parent(&gatewayv1.ParentReference{Group: p.Group, Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}, out.Namespace)
	if of.PolicyKind() == (api.PolicyKind{Group: api.GatewayGroup, Kind: KindGateway}) {
		out.GatewayNamespace, out.GatewayName = of.Namespace, of.Name
	} else {
		out.Unread = of
	}
	for i := range s.Spec.Listeners {
		out.Listeners = append(out.Listeners, listener(new(gatewayv1.Listener(s.Spec.Listeners[i])), s.Namespace))
	}
	return out
}

// FromXListenerSet is FromListenerSet for an XListenerSet, which has the same shape.
func FromXListenerSet(s *gatewayv1.ListenerSet) *ListenerSet {
	out := FromListenerSet(s)
	out.X = true
	return out
}

// FromService converts a Service.
func FromService(s *corev1.Service) *Service {
	out := &Service{
		Namespace: namespace(s.Namespace), Name: s.Name, Labels: s.Labels, Annotations: annotations(s.Annotations), Deleting: isDeleting(&s.ObjectMeta),
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, Port{p.Name, p.Port})
	}
	return out
}

// FromReferenceGrant converts a ReferenceGrant.
func FromReferenceGrant(g *gatewayv1.ReferenceGrant) *Grant {
	out := &Grant{Namespace: namespace(g.Namespace), Name: g.Name, Deleting: isDeleting(&g.ObjectMeta)}
	for _, f := range g.Spec.From {
		out.From = append(out.From, GrantFrom{string(f.Group), string(f.Kind), string(f.Namespace)})
	}
	for _, t := range g.Spec.To {
		out.To = append(out.To, GrantTo{string(t.Group), string(t.Kind), string(ptr.Deref(t.Name, ""))})
	}
	return out
}

func listener(l *gatewayv1.Listener, namespace string) Listener {
	out := Listener{
		Name: intern(string(l.Name)), Hostname: strings.ToLower(string(ptr.Deref(l.Hostname, ""))), Port: l.Port, Protocol: string(l.Protocol),
		Namespaces: NamespaceRule{Same: true},
	}
	var kinds []gatewayv1.RouteGroupKind
	if allowed := l.AllowedRoutes; allowed != nil {
		kinds = allowed.Kinds
		if n := allowed.Namespaces; n != nil && n.From != nil {
			out.Namespaces = namespaceRule(*n.From, n.Selector)
		}
	}
	out.Passthrough = l.TLS != nil && ptr.Deref(l.TLS.Mode, "") == gatewayv1.TLSModePassthrough
	out.OwnCertificates = l.TLS != nil && len(l.TLS.CertificateRefs) > 0 && !slices.ContainsFunc(l.TLS.CertificateRefs, func(ref gatewayv1.SecretObjectReference) bool {
		return ref.Namespace != nil && string(*ref.Namespace) != namespace
	})
	out.Kinds, out.AnyKind = routeKinds(l.Protocol, out.Passthrough, kinds)
	return out
}

func namespaceRule(from gatewayv1.FromNamespaces, s *metav1.LabelSelector) NamespaceRule {
	switch from {
	case gatewayv1.NamespacesFromAll:
		return NamespaceRule{All: true}
	case gatewayv1.NamespacesFromSame:
		return NamespaceRule{Same: true}
	case gatewayv1.NamespacesFromSelector:
		selector, _ := metav1.LabelSelectorAsSelector(s) // nil for an invalid one
		return NamespaceRule{Selector: selector}
	default: // None
		return NamespaceRule{}
	}
}

// routeKinds returns the kinds of routes that a listener allows: those of its
// protocol that are among allowedRoutes.kinds, if it has them.
func routeKinds(protocol gatewayv1.ProtocolType, passthrough bool, named []gatewayv1.RouteGroupKind) (kinds []string, anyKind bool) {
	all, known := protocolKinds[protocol]
	if protocol == gatewayv1.TLSProtocolType && passthrough {
		all = []string{KindTLSRoute} // a TCPRoute needs the content of the connection
	}
	if !known && len(named) == 0 {
		return nil, true
	}
	if len(named) == 0 {
		return all, false
	}
	for _, k := range named {
		if ptr.Deref(k.Group, api.GatewayGroup) == api.GatewayGroup && (!known || slices.Contains(all, string(k.Kind))) {
			kinds = append(kinds, string(k.Kind))
		}
	}
	return kinds, false
}

var protocolKinds = map[gatewayv1.ProtocolType][]string{
	gatewayv1.HTTPProtocolType:  {KindHTTPRoute, KindGRPCRoute},
	gatewayv1.HTTPSProtocolType: {KindHTTPRoute, KindGRPCRoute},
	gatewayv1.TLSProtocolType:   {KindTLSRoute, KindTCPRoute},
	gatewayv1.TCPProtocolType:   {KindTCPRoute},
	gatewayv1.UDPProtocolType:   {KindUDPRoute},
}
