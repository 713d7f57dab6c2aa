package gateway

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
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
		l.acceptsHostnames(r.Hostnames)
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

// listenerKey is what listeners are chosen by.
type listenerKey struct {
	transport Transport
	port      int32
	host      string
	client    string
}

// key returns what requests for the listener's hostname are chosen by.
func (m *ListenerMatch) key() listenerKey {
	return listenerKey{m.Listener.transport(), m.Listener.Port, m.Listener.Hostname, m.Client}
}

// listenerAt is a listener of an object, whatever its name.
type listenerAt struct {
	parent api.Ref
	listenerKey
}

func (m *ListenerMatch) at() listenerAt { return listenerAt{m.Parent(), m.key()} }

// Same reports whether two listeners have the same name at the same object.
func (m *ListenerMatch) Same(o *ListenerMatch) bool {
	return m == o || m.Listener.Name == o.Listener.Name && sameRef(m.Gateway, o.Gateway) && sameRef(m.Set, o.Set) &&
		sameRef(m.Service, o.Service) && m.Client == o.Client
}

// Parent returns the object that routes name to attach to the listener.
func (m *ListenerMatch) Parent() api.Ref {
	switch {
	case m.Service != nil:
		return m.Service.Ref()
	case m.Set != nil:
		return m.Set.Ref()
	default:
		return m.Gateway.Ref()
	}
}

// transport returns what the listener listens to.
func (l *Listener) transport() Transport {
	switch l.Protocol {
	case "HTTPS":
		return TransportTLS
	default:
		return Transport(l.Protocol)
	}
}

// SamePort reports whether two listeners compete for connections. All protocols but UDP
// share the ports of TCP.
func (l *Listener) SamePort(o *Listener) bool { return l.Port == o.Port && l.udp() == o.udp() }

// PlainHTTP reports whether the listener's protocol is HTTP, without TLS.
func (l *Listener) PlainHTTP() bool { return l.transport() == TransportHTTP }

// TLS reports whether the listener's protocol is HTTPS or TLS.
func (l *Listener) TLS() bool { return l.transport() == TransportTLS }

// TerminatesTLS reports whether the listener terminates TLS.
func (l *Listener) TerminatesTLS() bool { return l.TLS() && !l.Passthrough }

func (l *Listener) udp() bool { return l.transport() == TransportUDP }

// hostnamesAt returns the hostnames of a chain by which routes are on a listener at a rank
// of the chain: the listener's own stands for all less specific ones.
func (m *ListenerMatch) hostnamesAt(chain []string, rank int) []string {
	own := slices.Index(chain, m.Listener.Hostname)
	switch {
	case own == rank:
		return chain[rank:]
	case own < 0 || own > rank: // by a server name that is not the host
		return chain[rank : rank+1]
	default:
		return nil
	}
}

// ListensFor reports whether a listener has the port and the transport of a request.
func (l *Listener) ListensFor(q *Request) bool {
	return l.transport() == q.Transport && l.Port == q.Port
}

// sameRequests reports whether two listeners take the same requests.
func (m *ListenerMatch) sameRequests(o *ListenerMatch) bool {
	return m.Listener.SamePort(o.Listener) && m.Listener.Hostname == o.Listener.Hostname
}

// equal reports whether two listeners of an object have the same content.
func (m *ListenerMatch) equal(o *ListenerMatch) bool {
	if m.Parent() != o.Parent() || m.Client != o.Client {
		return false
	}
	a, b := *m.Listener, *o.Listener
	a.Name, b.Name = "", ""
	return m.Listener == o.Listener || reflect.DeepEqual(a, b)
}

// request returns a request that comes in by the listener, for a hostname.
func (m *ListenerMatch) request(hostname string) *Request {
	q := &Request{Transport: m.Listener.transport(), Port: m.Listener.Port, Client: m.Client}
	q.setHost(hostname)
	return q
}

// hostnames returns the hostnames by which requests reach a route at the listener.
func (m *ListenerMatch) hostnames(route *Route) []string {
	if m.Service != nil {
		return []string{m.Listener.Hostname} // those of routes mean nothing in a mesh
	}
	return Path{Listener: m.Listener, Route: route}.Hosts()
}

// isOn reports whether requests that come in by a listener may go along a path.
func (m *ListenerMatch) isOn(p *Path) bool {
	if m.Service == nil || p.Service == nil {
		return p.Listener != nil && m.Same(&ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener})
	}
	return m.Service.Ref() == p.Service.Ref() && (p.Port == 0 || p.Port == m.Listener.Port) &&
		(p.Client == "" || m.Client == "" || p.Client == m.Client)
}

// acceptsInMesh reports whether a route serves requests that come to a port of a Service
// from clients in a namespace.
func (m *ListenerMatch) acceptsInMesh(r *Route, reading Reading) bool {
	l, namespace := m.Listener, m.Client
	if l.Namespaces.Same {
		namespace = m.Service.Namespace
	}
	i := slices.Index(l.Kinds, r.Kind)
	return r.Namespace == namespace && (i == 0 || i > 0 && reading.Shared) && r.onPort(m.Service, l.Port)
}

// AwaitedRoute returns a route that stands for those that may be attached to a listener later,
// whatever that allows now: all of its requests go there that nothing else serves.
func AwaitedRoute(l *ListenerMatch) *Route {
	at := l.Parent()
	kind := KindHTTPRoute
	switch t := l.Listener.transport(); {
	case t == TransportUDP:
		kind = KindUDPRoute
	case t == TransportTCP, l.Listener.Protocol == string(TransportTLS):
		kind = KindTCPRoute
	}
	return &Route{
		Kind: kind, Namespace: at.Namespace, Name: "*" + at.Kind + "*" + at.Name + "*" + l.Listener.Name, // no object has such a name
		Created: Newest, Awaited: true,
		Parents: []Parent{{Kind: at.Kind, Namespace: at.Namespace, Name: at.Name, Section: l.Listener.Name}},
		Rules:   []Rule{{}},
	}
}
