package gateway

import (
	"cmp"
	"strings"
)

// compare orders matches on one hostname by precedence.
func (r *Router) compare(a, b Served) int {
	return cmp.Or(
		compareMatches(a.match, b.match, r.reading.RegexFirst),
		cmp.Compare(a.Route.Created, b.Route.Created),
		strings.Compare(a.Route.Namespace, b.Route.Namespace),
		strings.Compare(a.Route.Name, b.Route.Name),
		strings.Compare(a.Route.Kind, b.Route.Kind),
		cmp.Compare(a.Rule, b.Rule),
		compareHostnames(a.Listener.Listener.Hostname, b.Listener.Listener.Hostname),
		cmp.Compare(a.Match, b.Match),
	)
}

// compareMatches orders matches of one hostname by precedence (SEMANTICS section 9): it
// is negative if a comes before b. The precedence of a regular expression as a path is
// the implementation's: regexFirst has it before all others, else it comes last.
func compareMatches(a, b *routeMatch, regexFirst bool) int {
	if a.grpc && b.grpc {
		return cmp.Or(
			cmp.Compare(len(b.service.value), len(a.service.value)),
			cmp.Compare(len(b.method.value), len(a.method.value)),
			cmp.Compare(len(b.headers), len(a.headers)),
		)
	}
	return cmp.Or(
		cmp.Compare(b.pathRank(regexFirst), a.pathRank(regexFirst)),
		cmp.Compare(b.pathLength(), a.pathLength()),
		cmp.Compare(boolRank(b.verb != ""), boolRank(a.verb != "")),
		cmp.Compare(len(b.headers), len(a.headers)),
		cmp.Compare(len(b.params), len(a.params)),
	)
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
