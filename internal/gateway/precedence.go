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
	if a.Route != b.Route {
		c := cmp.Or(
			strings.Compare(a.Route.Namespace, b.Route.Namespace),
			strings.Compare(a.Route.Name, b.Route.Name),
			strings.Compare(a.Route.Kind, b.Route.Kind),
		)
		if c != 0 {
			return c, api.ByName
		}
	}
	if c := cmp.Compare(a.Rule, b.Rule); c != 0 {
		return c, api.ByEarlierRule
	}
	return cmp.Or(
		compareHostnames(a.Listener.Listener.Hostname, b.Listener.Listener.Hostname),
		cmp.Compare(a.Match, b.Match),
	), api.ByListener
}

// compareMatches is compare for the conditions alone. The precedence of a regular
// expression as a path is the implementation's.
func (r Reading) compareMatches(a, b *routeMatch) (int, api.Precedence) {
	if a.grpc && b.grpc {
		if c := cmp.Compare(len(b.service.value), len(a.service.value)); c != 0 {
			return c, api.ByGRPCService
		}
		if c := cmp.Compare(len(b.method.value), len(a.method.value)); c != 0 {
			return c, api.ByGRPCMethod
		}
		return cmp.Compare(len(b.headers), len(a.headers)), api.ByHeaders
	}
	if c := cmp.Compare(b.pathRank(r.RegexFirst), a.pathRank(r.RegexFirst)); c != 0 {
		if a.pathRank(false) == 1 || b.pathRank(false) == 1 {
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

func (m *routeMatch) pathRank(regexFirst bool) int {
	op := m.path.op
	if m.grpc {
		op = m.service.op
	}
	switch {
	case op == exactly:
		return 3
	case op == matchesRegex && regexFirst:
		return 4
	case op == matchesRegex:
		return 1
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
