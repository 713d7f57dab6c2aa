package hierarchy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Attached tells which listeners of the gateway take the route (SEMANTICS
// section 7), in the order of the listeners. namespaceLabels are those of the
// route's namespace.
func Attached(g *Gateway, r *Route, namespaceLabels labels.Set) []int {
	var out []int
	for i := range g.Listeners {
		if names(g, &g.Listeners[i], r) && admits(g, &g.Listeners[i], r, namespaceLabels) {
			out = append(out, i)
		}
	}
	return out
}

// names reports whether a parentRef of the route means the listener.
func names(g *Gateway, l *Listener, r *Route) bool {
	return slices.ContainsFunc(r.Parents, func(p Parent) bool {
		return p.Namespace == g.Namespace && p.Name == g.Name &&
			(p.Section == "" || p.Section == l.Name) &&
			(p.Port == 0 || p.Port == l.Port)
	})
}

func admits(g *Gateway, l *Listener, r *Route, namespaceLabels labels.Set) bool {
	return l.Namespaces.admits(g.Namespace, r.Namespace, namespaceLabels) &&
		(l.AnyKind || slices.Contains(l.Kinds, r.Kind)) &&
		hostnamesIntersect(l.Hostname, r.Hostnames)
}

func (n NamespaceRule) admits(gateway, route string, set labels.Set) bool {
	switch {
	case n.All:
		return true
	case n.Same:
		return gateway == route
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
