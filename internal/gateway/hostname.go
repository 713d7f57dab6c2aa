package gateway

import (
	"cmp"
	"slices"
	"strings"
)

// acceptsHostnames reports whether one of a route's hostnames, of which none stand for any,
// intersects with that of a listener.
func (l *Listener) acceptsHostnames(route []string) bool {
	return len(route) == 0 || slices.ContainsFunc(route, func(h string) bool { return hostnamesIntersect(l.Hostname, h) })
}

// HostsIntersect reports whether some name matches a hostname of each of two lists.
func HostsIntersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return hostnamesIntersect(x, y) })
	})
}

// CoveredBy reports whether each hostname that can reach the path can reach one of
// the others.
func (p Path) CoveredBy(others []Path) bool {
	return !slices.ContainsFunc(p.Hosts(), func(h string) bool {
		return !slices.ContainsFunc(others, func(o Path) bool { return o.servesHost(h) })
	})
}

// servesHost reports whether all names that a hostname matches reach the path.
func (p Path) servesHost(name string) bool {
	return slices.ContainsFunc(p.Hosts(), func(h string) bool { return hostnameTakes(h, name) })
}

// hostnamesIntersect reports whether some name matches both hostnames, of which ""
// matches any.
func hostnamesIntersect(a, b string) bool { return hostnameTakes(a, b) || hostnameTakes(b, a) }

// CommonHostname returns the hostname of the names that match both of two hostnames, of
// which "" matches any: the more specific one. It is false if no name does.
func CommonHostname(a, b string) (string, bool) {
	if compareHostnames(a, b) > 0 {
		a, b = b, a
	}
	return a, hostnamesIntersect(a, b)
}

// Hosts returns the hostnames by which requests reach a path: the intersection of
// those of its route and its listener, "" for any.
func (p Path) Hosts() []string {
	listener := ""
	if p.Listener != nil {
		listener = p.Listener.Hostname
	}
	if p.Route == nil {
		return []string{listener}
	}
	return CommonHostnames(p.Route.Hostnames, []string{listener})
}

// CommonHostnames returns the hostnames of the names that match one of each of two lists;
// the second one if the first is empty.
func CommonHostnames(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			if both, ok := CommonHostname(x, y); ok {
				out = append(out, both)
			}
		}
	}
	return out
}

// hostnamesFor returns the hostnames that match a name or a wildcard, the most specific
// one first; the last one is "", which matches any.
func hostnamesFor(host string) []string {
	if host == "" {
		return []string{""}
	}
	out := append(make([]string, 0, strings.Count(host, ".")+2), host)
	_, rest, _ := strings.Cut(strings.TrimPrefix(host, "*."), ".")
	for rest != "" {
		out = append(out, "*."+rest)
		_, rest, _ = strings.Cut(rest, ".")
	}
	return append(out, "")
}

// HostnameChains returns, for each hostname of the route, that one and all less specific
// hostnames that match the same names; "" stands for any.
func (r *Route) HostnameChains() [][]string {
	if len(r.Hostnames) == 0 {
		return [][]string{{""}}
	}
	var out [][]string
	for _, h := range r.Hostnames {
		out = append(out, hostnamesFor(h))
	}
	return out
}

// hasExactHostnames reports whether each hostname of the route stands for one name.
func (r *Route) hasExactHostnames() bool {
	return len(r.Hostnames) > 0 && !slices.ContainsFunc(r.Hostnames, func(h string) bool { return strings.HasPrefix(h, "*") })
}

// hostnameTakes reports whether a hostname matches a name, or all that another hostname
// matches; "" matches any. A wildcard matches one or more labels.
func hostnameTakes(hostname, name string) bool {
	suffix, wild := strings.CutPrefix(hostname, "*")
	return hostname == "" || hostname == name || wild && len(name) > len(suffix) && strings.HasSuffix(name, suffix)
}

// compareHostnames orders hostnames that match one name: the most specific one first.
func compareHostnames(a, b string) int {
	return cmp.Or(
		cmp.Compare(boolRank(a == ""), boolRank(b == "")),
		cmp.Compare(boolRank(strings.HasPrefix(a, "*")), boolRank(strings.HasPrefix(b, "*"))),
		cmp.Compare(len(b), len(a)),
	)
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
