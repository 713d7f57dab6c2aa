package gateway

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// ListenerMatch is a listener of a gateway, its own or one that a ListenerSet adds. In a
// mesh, a port of a Service for the clients of a namespace is one, too.
type ListenerMatch struct {
	Gateway  *Gateway
	Set      *ListenerSet // nil for a listener of the gateway's own
	Listener *Listener
	// Service instead of a gateway, and the namespace of its Client, "" for clients in
	// namespaces without routes of their own. The routes in Namespaces.Same are those of
	// the Service's namespace, else those of the client's.
	Service *Service
	Client  string
}

// OwnListeners returns the gateway's own listeners.
func OwnListeners(g *Gateway) []ListenerMatch {
	out := make([]ListenerMatch, len(g.Listeners))
	for i := range g.Listeners {
		out[i] = ListenerMatch{Gateway: g, Listener: &g.Listeners[i]}
	}
	return out
}

// Text names the listener, such as "listener http of Gateway infra/edge".
func (m *ListenerMatch) Text() string {
	return fmt.Sprintf("listener %s of %s", m.Listener.Name, m.Parent())
}

// SetListeners returns the listeners that a set adds to the gateway, none if the
// gateway does not allow the set. namespaceLabels are those of the set's namespace.
func SetListeners(g *Gateway, s *ListenerSet, namespaceLabels labels.Set) []ListenerMatch {
	if s.GatewayNamespace != g.Namespace || s.GatewayName != g.Name ||
		!g.Sets.Allows(g.Namespace, s.Namespace, namespaceLabels) {
		return nil
	}
	out := make([]ListenerMatch, len(s.Listeners))
	for i := range s.Listeners {
		out[i] = ListenerMatch{Gateway: g, Set: s, Listener: &s.Listeners[i]}
	}
	return out
}

// Accepts reports whether the route attaches to the listener (SEMANTICS section 7).
// namespaceLabels are those of the route's namespace.
func (m ListenerMatch) Accepts(r *Route, namespaceLabels labels.Set) bool {
	kind, namespace, name := KindGateway, m.Gateway.Namespace, m.Gateway.Name
	if m.Set != nil {
		kind, namespace, name = m.Set.Ref().Kind, m.Set.Namespace, m.Set.Name
	}
	return slices.ContainsFunc(r.Parents, func(p Parent) bool {
		return p.Is(kind, namespace, name) && p.selects(m.Listener)
	}) && m.Listener.allows(namespace, r, namespaceLabels)
}

// selects reports whether a parentRef selects a listener of the object that it
// refers to, by section and port.
func (p Parent) selects(l *Listener) bool {
	return (p.Section == "" || p.Section == l.Name) && (p.Port == 0 || p.Port == l.Port)
}

// allows reports whether the listener of an object in a namespace allows the route.
func (l *Listener) allows(namespace string, r *Route, namespaceLabels labels.Set) bool {
	return r.Awaited || l.Namespaces.Allows(namespace, r.Namespace, namespaceLabels) &&
		l.allowsKind(r.Kind) &&
		anyHostnameIntersects(l.Hostname, r.Hostnames)
}

func (l *Listener) allowsKind(kind string) bool { return l.AnyKind || slices.Contains(l.Kinds, kind) }

// Allows reports whether the rule of an object in namespace own allows an object in
// namespace from, which has the labels.
func (n NamespaceRule) Allows(own, from string, set labels.Set) bool {
	switch {
	case n.All:
		return true
	case n.Same:
		return own == from
	default:
		return n.Selector != nil && n.Selector.Matches(set)
	}
}
