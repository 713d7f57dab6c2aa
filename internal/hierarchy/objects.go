package hierarchy

import (
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Kinds of Gateway API that paths are made of.
const (
	KindGatewayClass = "GatewayClass"
	KindGateway      = "Gateway"
	KindListener     = "Listener"
	KindHTTPRoute    = "HTTPRoute"
	KindGRPCRoute    = "GRPCRoute"
	KindNamespace    = "Namespace"
)

// RouteKinds are the kinds of routes that paths go through.
var RouteKinds = []string{KindGRPCRoute, KindHTTPRoute}

// Class is a GatewayClass.
type Class struct {
	Name string
}

// Ref names the class.
func (c *Class) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: KindGatewayClass, Name: c.Name}
}

// Namespace is what attachment asks of a namespace.
type Namespace struct {
	Name   string
	Labels labels.Set
}

// Ref names the namespace.
func (n *Namespace) Ref() api.Ref { return api.Ref{Kind: KindNamespace, Name: n.Name} }

// Gateway is what paths need of a Gateway.
type Gateway struct {
	Namespace, Name string
	Class           string
	Listeners       []Listener
}

// Ref names the gateway.
func (g *Gateway) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: KindGateway, Namespace: g.Namespace, Name: g.Name}
}

// Listener returns the index of the listener of that name, or -1.
func (g *Gateway) Listener(name string) int {
	for i := range g.Listeners {
		if g.Listeners[i].Name == name {
			return i
		}
	}
	return -1
}

// Listener is a listener of a Gateway.
type Listener struct {
	Name string
	// Hostname is in lower case, empty for any.
	Hostname string
	Port     int32
	// Namespaces admits routes by their namespace.
	Namespaces NamespaceRule
	// Kinds are the kinds of routes that the listener takes; AnyKind tells
	// that its protocol is none of Gateway API's and it names no kinds.
	Kinds   []string
	AnyKind bool
}

// NamespaceRule is allowedRoutes.namespaces.
type NamespaceRule struct {
	// All or Same; else Selector decides, and nil selects nothing.
	All, Same bool
	Selector  labels.Selector
}

// Route is what paths need of a route.
type Route struct {
	Kind            string
	Namespace, Name string
	// Hostnames are in lower case, none for any.
	Hostnames []string
	Parents   []Parent
	Rules     []Rule
	// WantsDefaultGateways tells that the route asks for default gateways,
	// which are experimental and not read.
	WantsDefaultGateways bool
}

// Ref names the route.
func (r *Route) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Parent is a parentRef to a Gateway.
type Parent struct {
	Namespace, Name string
	// Section is the listener's name, empty for all.
	Section string
	// Port is the listener's, 0 for all.
	Port int32
}

// Rule is a rule of a route. Its identity is its position.
type Rule struct {
	Name string
	// Fingerprint tells rules without a name apart, before and after an edit.
	Fingerprint uint64
}
