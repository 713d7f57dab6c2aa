package gateway

import (
	"cmp"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// compare orders matches on one hostname by precedence.
func (r *Router) compare(a, b Served) int {
	c, _ := r.reading.compare(&a, &b)
	return c
}

// compare is negative if a comes before b by precedence (SEMANTICS section 9), and says by
// which criterion: the first in which they differ.
func (r Reading) compare(a, b *Served) (int, api.Precedence) {
	if c, by := r.compareMatches(a.match, b.match); c != 0 {
		return c, by
	}
	if c := cmp.Compare(a.Route.Created, b.Route.Created); c != 0 {
		return c, api.ByOlderRoute
	}
	if c := compareAge(a.Route, b.Route); c != 0 {
		return c, api.ByName
	}
	if c := cmp.Compare(a.Rule, b.Rule); c != 0 {
		return c, api.ByEarlierRule
	}
	return cmp.Or(
		compareHostnames(a.Listener.Listener.Hostname, b.Listener.Listener.Hostname),
		cmp.Compare(a.Match, b.Match),
	), api.ByListener
}

// compareAge orders routes: the oldest one first, then by name.
func compareAge(a, b *Route) int {
	if a == b {
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.Created, b.Created),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.Kind, b.Kind),
	)
}

// compareMatches is compare for the conditions alone. The precedence of a regular
// expression as a path is the implementation's.
func (r Reading) compareMatches(a, b *routeMatch) (int, api.Precedence) {
	if a.grpc && b.grpc {
		if c := r.compareGRPCRegex(a, b); c != 0 {
			return c, api.ByRegularExpression
		}
		if c := cmp.Compare(len(b.service.value), len(a.service.value)); c != 0 {
			return c, api.ByGRPCService
		}
		if c := cmp.Compare(len(b.method.value), len(a.method.value)); c != 0 {
			return c, api.ByGRPCMethod
		}
		return cmp.Compare(len(b.headers), len(a.headers)), api.ByHeaders
	}
	if c := cmp.Compare(b.pathRank(r.Regex), a.pathRank(r.Regex)); c != 0 {
		if a.regexPath() || b.regexPath() {
			return c, api.ByRegularExpression
		}
		return c, api.ByExactPath
	}
	if c := cmp.Compare(b.pathLength(), a.pathLength()); c != 0 {
		return c, api.ByLongerPath
	}
	if c := cmp.Compare(boolRank(b.verb != ""), boolRank(a.verb != "")); c != 0 {
		return c, api.ByMethod
	}
	if c := cmp.Compare(len(b.headers), len(a.headers)); c != 0 {
		return c, api.ByHeaders
	}
	return cmp.Compare(len(b.params), len(a.params)), api.ByQueryParams
}

// compareGRPCRegex orders a match of a GRPCRoute with a regular expression and one
// without.
func (r Reading) compareGRPCRegex(a, b *routeMatch) int {
	switch c := cmp.Compare(boolRank(a.regexPath()), boolRank(b.regexPath())); r.Regex {
	case RegexFirst:
		return -c
	case RegexAfterExact:
		return 0
	default:
		return c
	}
}

// regexPath reports whether the condition on the path, or on the gRPC service or method,
// is a regular expression that is not a literal.
func (m *routeMatch) regexPath() bool {
	return m.path.op == matchesRegex || m.service.op == matchesRegex || m.method.op == matchesRegex
}

func (m *routeMatch) pathRank(order RegexOrder) int {
	op := m.path.op
	if m.grpc {
		op = m.service.op
	}
	switch op {
	case exactly:
		return 4
	case matchesRegex:
		return [...]int{RegexLast: 1, RegexAfterExact: 3, RegexFirst: 5}[order]
	default:
		return 2
	}
}

func (m *routeMatch) pathLength() int {
	if m.grpc {
		return len(m.service.value) + len(m.method.value)
	}
	return len(m.path.value)
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
