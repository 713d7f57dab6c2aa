package gateway

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// ListenerMatch is a listener of a gateway, its own or one that a ListenerSet adds.
type ListenerMatch struct {
	Gateway  *Gateway
	Set      *ListenerSet // nil for a listener of the gateway's own
	Listener *Listener
}

// OwnListeners returns the gateway's own listeners.
func OwnListeners(g *Gateway) []ListenerMatch {
	out := make([]ListenerMatch, len(g.Listeners))
	for i := range g.Listeners {
		out[i] = ListenerMatch{Gateway: g, Listener: &g.Listeners[i]}
	}
	return out
}

// SetListeners returns the listeners that a set adds to the gateway: none if the
// gateway does not admit it. namespaceLabels are those of the set's namespace.
func SetListeners(g *Gateway, s *ListenerSet, namespaceLabels labels.Set) []ListenerMatch {
	if s.GatewayNamespace != g.Namespace || s.GatewayName != g.Name ||
		!g.Sets.Admits(g.Namespace, s.Namespace, namespaceLabels) {
		return nil
	}
	out := make([]ListenerMatch, len(s.Listeners))
	for i := range s.Listeners {
		out[i] = ListenerMatch{Gateway: g, Set: s, Listener: &s.Listeners[i]}
	}
	return out
}

// Accepts reports whether the route is on the listener (SEMANTICS section 7).
// namespaceLabels are those of the route's namespace.
func (d ListenerMatch) Accepts(r *Route, namespaceLabels labels.Set) bool {
	kind, namespace, name := KindGateway, d.Gateway.Namespace, d.Gateway.Name
	if d.Set != nil {
		kind, namespace, name = d.Set.Ref().Kind, d.Set.Namespace, d.Set.Name
	}
	return slices.ContainsFunc(r.Parents, func(p Parent) bool {
		return p.Is(kind, namespace, name) && p.names(d.Listener)
	}) && d.Listener.admits(namespace, r, namespaceLabels)
}

// names reports whether a parentRef means a listener of the object that it
// refers to.
func (p Parent) names(l *Listener) bool {
	return (p.Section == "" || p.Section == l.Name) && (p.Port == 0 || p.Port == l.Port)
}

// admits reports whether the listener of an object in a namespace admits the
// route.
func (l *Listener) admits(namespace string, r *Route, namespaceLabels labels.Set) bool {
	return l.Namespaces.Admits(namespace, r.Namespace, namespaceLabels) &&
		l.takesKind(r.Kind) &&
		hostnamesIntersect(l.Hostname, r.Hostnames)
}

func (l *Listener) takesKind(kind string) bool { return l.AnyKind || slices.Contains(l.Kinds, kind) }

// Admits reports whether the rule of an object in a namespace lets in one from
// a namespace with those labels.
func (n NamespaceRule) Admits(own, from string, set labels.Set) bool {
	switch {
	case n.All:
		return true
	case n.Same:
		return own == from
	default:
		return n.Selector != nil && n.Selector.Matches(set)
	}
}

func hostnamesIntersect(listener string, route []string) bool {
	return listener == "" || len(route) == 0 ||
		slices.ContainsFunc(route, func(h string) bool { return hostnameMatch(listener, h) })
}

// hostnameMatch reports whether some name matches both. A wildcard takes any
// number of labels, at least one.
func hostnameMatch(a, b string) bool {
	suffixA, wildA := strings.CutPrefix(a, "*")
	suffixB, wildB := strings.CutPrefix(b, "*")
	switch {
	case wildA && wildB:
		return strings.HasSuffix(suffixA, suffixB) || strings.HasSuffix(suffixB, suffixA)
	case wildA:
		return under(b, suffixA)
	case wildB:
		return under(a, suffixB)
	default:
		return a == b
	}
}

// under reports whether a name lies under a suffix that starts with a dot.
func under(name, suffix string) bool {
	return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
}

// ShareHosts reports whether some name may reach both paths: the hostnames of
// their listeners and routes intersect. A path without a listener takes any.
func ShareHosts(p, q Path) bool {
	for _, a := range p.Hosts() {
		for _, b := range q.Hosts() {
			if HostnamesMeet(a, b) {
				return true
			}
		}
	}
	return false
}

// CoveredBy reports whether every name that may reach the path may reach one of
// the others.
func (p Path) CoveredBy(others []Path) bool {
	for _, h := range p.Hosts() {
		if !slices.ContainsFunc(others, func(o Path) bool { return o.takesHost(h) }) {
			return false
		}
	}
	return true
}

// takesHost reports whether all names that a hostname means reach the path.
func (p Path) takesHost(name string) bool {
	return slices.ContainsFunc(p.Hosts(), func(h string) bool {
		suffix, wild := strings.CutPrefix(h, "*")
		return h == "" || h == name || name != "" && wild && under(name, suffix)
	})
}

// HostnamesMeet reports whether some name is meant by both hostnames, of which ""
// means any.
func HostnamesMeet(a, b string) bool { return a == "" || b == "" || hostnameMatch(a, b) }

// Hosts returns the hostnames by which requests reach a path: those of its route
// as far as its listener takes them, "" for any.
func (p Path) Hosts() []string {
	listener := ""
	if p.Listener != nil {
		listener = p.Listener.Hostname
	}
	if p.Route == nil || len(p.Route.Hostnames) == 0 {
		return []string{listener}
	}
	var out []string
	for _, h := range p.Route.Hostnames {
		switch {
		case listener == "" || under(h, strings.TrimPrefix(listener, "*")):
			out = append(out, h)
		case hostnameMatch(listener, h):
			out = append(out, listener)
		}
	}
	return out
}
