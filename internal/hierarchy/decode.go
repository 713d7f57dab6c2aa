package hierarchy

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// FromNamespace reads a Namespace. The label of its name is there even if the
// object comes from a file (SEMANTICS section 7).
func FromNamespace(n *corev1.Namespace) *Namespace {
	set := labels.Merge(n.Labels, labels.Set{corev1.LabelMetadataName: n.Name})
	return &Namespace{Name: n.Name, Labels: set}
}

// FromGatewayClass reads a GatewayClass.
func FromGatewayClass(c *gatewayv1.GatewayClass) *Class { return &Class{Name: c.Name} }

// FromGateway reads a Gateway, defaulted as the API server would.
func FromGateway(g *gatewayv1.Gateway) *Gateway {
	out := &Gateway{
		Namespace: namespace(g.Namespace), Name: g.Name,
		Class:     string(g.Spec.GatewayClassName),
		Listeners: make([]Listener, len(g.Spec.Listeners)),
	}
	for i := range g.Spec.Listeners {
		out.Listeners[i] = fromListener(&g.Spec.Listeners[i])
	}
	return out
}

func fromListener(l *gatewayv1.Listener) Listener {
	out := Listener{
		Name:       string(l.Name),
		Port:       int32(l.Port),
		Namespaces: NamespaceRule{Same: true},
	}
	if l.Hostname != nil {
		out.Hostname = strings.ToLower(string(*l.Hostname))
	}
	var kinds []gatewayv1.RouteGroupKind
	if l.AllowedRoutes != nil {
		kinds = l.AllowedRoutes.Kinds
		out.Namespaces = namespaceRule(l.AllowedRoutes.Namespaces)
	}
	out.Kinds, out.AnyKind = routeKinds(l.Protocol, kinds)
	return out
}

func namespaceRule(n *gatewayv1.RouteNamespaces) NamespaceRule {
	if n == nil || n.From == nil {
		return NamespaceRule{Same: true}
	}
	switch *n.From {
	case gatewayv1.NamespacesFromAll:
		return NamespaceRule{All: true}
	case gatewayv1.NamespacesFromSame:
		return NamespaceRule{Same: true}
	case gatewayv1.NamespacesFromSelector:
		return NamespaceRule{Selector: selector(n.Selector)}
	default: // None
		return NamespaceRule{}
	}
}

// selector returns nil, which selects nothing, for none and for one that
// cannot be read.
func selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	return out
}

// routeKinds returns the kinds of routes that a listener takes: those of its
// protocol, narrowed by the kinds that it names, never widened.
func routeKinds(protocol gatewayv1.ProtocolType, named []gatewayv1.RouteGroupKind) (kinds []string, anyKind bool) {
	all, known := protocolKinds[protocol]
	if !known && len(named) == 0 {
		return nil, true
	}
	if len(named) == 0 {
		return all, false
	}
	for _, k := range named {
		gateway := k.Group == nil || *k.Group == api.GatewayGroup
		if gateway && (!known || slices.Contains(all, string(k.Kind))) {
			kinds = append(kinds, string(k.Kind))
		}
	}
	return kinds, false
}

var protocolKinds = map[gatewayv1.ProtocolType][]string{
	gatewayv1.HTTPProtocolType:  {KindHTTPRoute, KindGRPCRoute},
	gatewayv1.HTTPSProtocolType: {KindHTTPRoute, KindGRPCRoute},
	gatewayv1.TLSProtocolType:   {"TLSRoute", "TCPRoute"},
	gatewayv1.TCPProtocolType:   {"TCPRoute"},
	gatewayv1.UDPProtocolType:   {"UDPRoute"},
}

// FromHTTPRoute reads an HTTPRoute, defaulted as the API server would: one
// without rules has one that matches everything.
func FromHTTPRoute(r *gatewayv1.HTTPRoute) *Route {
	out := fromRoute(KindHTTPRoute, r.ObjectMeta, &r.Spec.CommonRouteSpec, r.Spec.Hostnames)
	out.Rules = make([]Rule, len(r.Spec.Rules))
	for i := range r.Spec.Rules {
		out.Rules[i] = rule(r.Spec.Rules[i].Name, httpMatches(r.Spec.Rules[i].Matches))
	}
	if r.Spec.Rules == nil {
		out.Rules = []Rule{rule(nil, httpMatches(nil))}
	}
	return out
}

// FromGRPCRoute reads a GRPCRoute. The API server gives it no rule of its own.
func FromGRPCRoute(r *gatewayv1.GRPCRoute) *Route {
	out := fromRoute(KindGRPCRoute, r.ObjectMeta, &r.Spec.CommonRouteSpec, r.Spec.Hostnames)
	out.Rules = make([]Rule, len(r.Spec.Rules))
	for i := range r.Spec.Rules {
		out.Rules[i] = rule(r.Spec.Rules[i].Name, grpcMatches(r.Spec.Rules[i].Matches))
	}
	return out
}

func fromRoute(kind string, meta metav1.ObjectMeta, spec *gatewayv1.CommonRouteSpec, hostnames []gatewayv1.Hostname) *Route {
	out := &Route{
		Kind: kind, Namespace: namespace(meta.Namespace), Name: meta.Name,
		WantsDefaultGateways: spec.UseDefaultGateways != "" && spec.UseDefaultGateways != gatewayv1.GatewayDefaultScopeNone,
	}
	for _, h := range hostnames {
		out.Hostnames = append(out.Hostnames, strings.ToLower(string(h)))
	}
	for i := range spec.ParentRefs {
		if p, ok := parent(&spec.ParentRefs[i], out.Namespace); ok {
			out.Parents = append(out.Parents, p)
		}
	}
	return out
}

// parent reads a parentRef; ok is false if it names no Gateway.
func parent(ref *gatewayv1.ParentReference, routeNamespace string) (p Parent, ok bool) {
	if ref.Group != nil && *ref.Group != api.GatewayGroup || ref.Kind != nil && *ref.Kind != KindGateway {
		return Parent{}, false
	}
	p = Parent{Namespace: routeNamespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		p.Namespace = string(*ref.Namespace)
	}
	if ref.SectionName != nil {
		p.Section = string(*ref.SectionName)
	}
	if ref.Port != nil {
		p.Port = int32(*ref.Port)
	}
	return p, true
}

func rule[M any](name *gatewayv1.SectionName, matches M) Rule {
	var out Rule
	if name != nil {
		out.Name = string(*name)
	}
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(matches) // a hash takes every write, and matches are plain data
	out.Fingerprint = h.Sum64()
	return out
}

// namespace returns where an object from a file without a namespace is.
func namespace(name string) string {
	if name == "" {
		return metav1.NamespaceDefault
	}
	return name
}
