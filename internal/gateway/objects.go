package gateway

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Kinds of the objects of paths.
const (
	KindGatewayClass = "GatewayClass"
	KindGateway      = "Gateway"
	KindListenerSet  = "ListenerSet"
	// KindXListenerSet is the experimental form of ListenerSet.
	KindXListenerSet   = "XListenerSet"
	KindListener       = "Listener"
	KindHTTPRoute      = "HTTPRoute"
	KindGRPCRoute      = "GRPCRoute"
	KindTLSRoute       = "TLSRoute"
	KindTCPRoute       = "TCPRoute"
	KindUDPRoute       = "UDPRoute"
	KindReferenceGrant = "ReferenceGrant"
	KindNamespace      = "Namespace"
	KindService        = "Service"
	// KindMesh is the kind of the whole mesh, for which no object exists.
	KindMesh = "Mesh"
)

// RouteKinds are the kinds of routes that paths go through.
var RouteKinds = []string{KindGRPCRoute, KindHTTPRoute, KindTCPRoute, KindTLSRoute, KindUDPRoute}

// GatewayKinds are all kinds of Gateway API that are supported.
var GatewayKinds = append([]string{KindGatewayClass, KindGateway, KindListenerSet, KindXListenerSet, KindReferenceGrant}, RouteKinds...)

// KindOf returns a kind of Gateway API with its group.
func KindOf(kind string) api.PolicyKind {
	if kind == KindXListenerSet {
		return api.PolicyKind{Group: api.GatewayXGroup, Kind: kind}
	}
	return api.PolicyKind{Group: api.GatewayGroup, Kind: kind}
}

// IsRoute reports whether a kind is one of a route.
func IsRoute(k api.PolicyKind) bool {
	return k.Group == api.GatewayGroup && slices.Contains(RouteKinds, k.Kind)
}

// Known reports whether objects of a kind are in the cache, so that one that is not
// in the cache does not exist.
func Known(k api.PolicyKind) bool {
	return k == KindOf(k.Kind) && slices.Contains(GatewayKinds, k.Kind) ||
		k.Group == "" && (k.Kind == KindNamespace || k.Kind == KindService)
}

// ClusterScoped reports whether objects of a kind that is Known have no
// namespace.
func ClusterScoped(k api.PolicyKind) bool {
	return k == api.PolicyKind{Group: api.GatewayGroup, Kind: KindGatewayClass} || k == api.PolicyKind{Kind: KindNamespace}
}

// Class is a GatewayClass.
type Class struct {
	Name   string
	Labels labels.Set
	// Controller is its controllerName.
	Controller string
	// Parameters is its parametersRef, zero if it has none.
	Parameters api.Ref
	// Deleting is set while it is being deleted, or will be with its owner.
	Deleting bool
}

// Ref names the class.
func (c *Class) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: KindGatewayClass, Name: c.Name}
}

// Namespace has the fields of a Namespace that attachment depends on.
type Namespace struct {
	Name   string
	Labels labels.Set
	// Terminating is set while it is being deleted with everything in it.
	Terminating bool
	// Deleting is set while it is being deleted, or will be with its owner.
	Deleting bool
}

// Ref names the namespace.
func (n *Namespace) Ref() api.Ref { return api.Ref{Kind: KindNamespace, Name: n.Name} }

// Gateway has the fields of a Gateway that paths depend on.
type Gateway struct {
	Namespace, Name string
	Labels          labels.Set
	// Created is in seconds since 1970, or Newest.
	Created int64
	Class   string
	// Parameters is its infrastructure.parametersRef, zero if it has none.
	Parameters api.Ref
	Listeners  []Listener
	// Sets is allowedListeners.
	Sets NamespaceRule
}

// Ref names the gateway.
func (g *Gateway) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: KindGateway, Namespace: g.Namespace, Name: g.Name}
}

// ListenerSet has the fields of a ListenerSet or an XListenerSet that paths depend on.
type ListenerSet struct {
	Namespace, Name string
	// X is set for an XListenerSet. A ListenerSet can have the same name.
	X bool
	// Created is in seconds since 1970, or Newest. Of two sets with listeners that
	// conflict, the older one takes precedence.
	Created int64
	Labels  labels.Set
	// Gateway that it adds its listeners to; GatewayName is empty if its parent is
	// of another kind.
	GatewayNamespace, GatewayName string
	// Unread is its parent if that is of an unsupported kind, else zero.
	Unread    api.Ref
	Listeners []Listener
}

// Ref names the listener set.
func (s *ListenerSet) Ref() api.Ref {
	kind := KindOf(KindListenerSet)
	if s.X {
		kind = KindOf(KindXListenerSet)
	}
	return api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: s.Namespace, Name: s.Name}
}

// CompareSets orders listener sets by precedence: the oldest one first, then by namespace
// and name.
func CompareSets(a, b *ListenerSet) int {
	return cmp.Or(
		cmp.Compare(a.Created, b.Created),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		cmp.Compare(boolRank(a.X), boolRank(b.X)),
	)
}

// HasListener reports whether a listener has the name and the port. An empty name and
// port 0 match any.
func HasListener(all []Listener, name string, port int32) bool {
	return slices.ContainsFunc(all, func(l Listener) bool {
		return (name == "" || l.Name == name) && (port == 0 || l.Port == port)
	})
}

// Listener is a listener of a Gateway or ListenerSet.
type Listener struct {
	Name string
	// Hostname is in lower case, empty for any.
	Hostname string
	Port     int32
	Protocol string
	// Passthrough is set if the listener does not terminate TLS.
	Passthrough bool
	// OwnCertificates is set if it has certificates, all of the namespace of its parent.
	OwnCertificates bool
	// Namespaces is allowedRoutes.namespaces.
	Namespaces NamespaceRule
	// Kinds are the kinds of routes that the listener allows; AnyKind is set if its
	// protocol is not one of Gateway API's and it lists no kinds.
	Kinds   []string
	AnyKind bool
}

// NamespaceRule is allowedRoutes.namespaces, or allowedListeners.namespaces.
type NamespaceRule struct {
	// All or Same; else Selector, where nil selects nothing.
	All, Same bool
	Selector  labels.Selector
}

// Service has the fields of a Service that paths depend on.
type Service struct {
	Namespace, Name string
	Labels          labels.Set
	// Annotations without those that only tools read.
	Annotations map[string]string
	Ports       []Port
	// Deleting is set while it is being deleted, or will be with its owner.
	Deleting bool
}

// Port of a Service.
type Port struct {
	Name   string
	Number int32
}

// Ref names the service.
func (s *Service) Ref() api.Ref {
	return api.Ref{Kind: KindService, Namespace: s.Namespace, Name: s.Name}
}

// Port returns the number of the port with a name, or 0.
func (s *Service) Port(name string) int32 {
	for _, p := range s.Ports {
		if p.Name == name {
			return p.Number
		}
	}
	return 0
}

// HasPort reports whether the service has a port with a number.
func (s *Service) HasPort(number int32) bool {
	return slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Number == number })
}

// Grant is a ReferenceGrant.
type Grant struct {
	Namespace, Name string
	From            []GrantFrom
	To              []GrantTo
	// Deleting is set while it is being deleted, or will be with its owner.
	Deleting bool
}

// GrantFrom selects the objects that are allowed to refer.
type GrantFrom struct{ Group, Kind, Namespace string }

// GrantTo selects the objects that they are allowed to refer to; an empty name
// selects all.
type GrantTo struct{ Group, Kind, Name string }

// Ref names the grant.
func (g *Grant) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: KindReferenceGrant, Namespace: g.Namespace, Name: g.Name}
}

// Allows reports whether the grant allows objects of a kind in a namespace to refer to
// an object in the grant's namespace.
func (g *Grant) Allows(from api.PolicyKind, namespace string, to api.Ref) bool {
	return slices.Contains(g.From, GrantFrom{from.Group, from.Kind, namespace}) &&
		slices.ContainsFunc(g.To, func(t GrantTo) bool {
			return t.Group == to.Group && t.Kind == to.Kind && (t.Name == "" || t.Name == to.Name)
		})
}

// LabelsOf returns the labels of an object of the hierarchy, nil for others.
func LabelsOf(object any) labels.Set {
	switch o := object.(type) {
	case *Class:
		return o.Labels
	case *Namespace:
		return o.Labels
	case *Gateway:
		return o.Labels
	case *ListenerSet:
		return o.Labels
	case *Service:
		return o.Labels
	case *Route:
		return o.Labels
	case *Labeled:
		return o.Labels
	default:
		return nil
	}
}

// Labeled is an object of another kind, of which only the labels count: policies may select
// it. Routes send requests to it, say.
type Labeled struct {
	Kind            api.PolicyKind
	Namespace, Name string
	Labels          labels.Set
}

// FromMetadata returns what of an object of such a kind is read.
func FromMetadata(kind api.PolicyKind, o metav1.Object) *Labeled {
	return &Labeled{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels()}
}

// Ref names the object.
func (l *Labeled) Ref() api.Ref {
	return api.Ref{Group: l.Kind.Group, Kind: l.Kind.Kind, Namespace: l.Namespace, Name: l.Name}
}

// sameRef reports whether two objects are both nil or have the same reference.
func sameRef[T any, P interface {
	*T
	Ref() api.Ref
}](a, b P) bool {
	return a == b || a != nil && b != nil && a.Ref() == b.Ref()
}
