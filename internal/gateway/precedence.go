package gateway

import (
	"cmp"

	api "overrule.dev/overrule/api/v1alpha1"
)

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
		cmp.Compare(a.match.match, b.match.match),
	), api.ByListener
}

// compareMatches is compare for the conditions alone. The precedence of a regular
// expression as a path is the implementation's.
func (r Reading) compareMatches(a, b *routeMatch) (int, api.Precedence) {
	x, y := a.rank(r.Regex), b.rank(r.Regex)
	for i := range x {
		if c := cmp.Compare(y[i], x[i]); c != 0 {
			return c, criterion(i, a, b)
		}
	}
	return 0, api.ByQueryParams
}

// matchRank has how specific a match is, the first criterion first: the sort of its path,
// the length of the path or of the gRPC service, that of the gRPC method, whether it has an
// HTTP method, the number of its headers, and of its parameters. All matches, of whatever
// kind, are in one order by it.
type matchRank [6]int

func (m *routeMatch) rank(order RegexOrder) matchRank {
	if m.grpc {
		return matchRank{m.pathRank(order), len(m.service.value), len(m.method.value), 0, len(m.headers), 0}
	}
	return matchRank{m.pathRank(order), len(m.path.value), 0, boolRank(m.verb != ""), len(m.headers), len(m.params)}
}

// criterion names an element of a matchRank in which two matches differ.
func criterion(i int, a, b *routeMatch) api.Precedence {
	switch {
	case i == 0 && (a.regexPath() || b.regexPath()):
		return api.ByRegularExpression
	case i <= 1 && a.grpc && b.grpc:
		return api.ByGRPCService
	case i == 0:
		return api.ByExactPath
	default:
		return [...]api.Precedence{1: api.ByLongerPath, api.ByGRPCMethod, api.ByMethod, api.ByHeaders, api.ByQueryParams}[i]
	}
}

// pathRank orders the sorts of paths. Of gRPC, the service decides, and the length of the
// text of a regular expression that does not come first or last.
func (m *routeMatch) pathRank(order RegexOrder) int {
	op := m.path.op
	if m.path.expression {
		op = matchesRegex
	}
	if m.grpc {
		switch op = m.service.op; {
		case m.regexPath() && order != RegexAfterExact:
			op = matchesRegex
		case op == matchesRegex:
			op = exactly
		}
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

// Reading decides what Gateway API leaves to implementations.
type Reading struct {
	// Shared has the routes of all listeners of a port whose hostnames match compete
	// for a request; else only those of the listener with the most specific hostname
	// do (listener isolation). In a mesh, it has the routes of all kinds compete; else
	// only those of the first kind do.
	Shared bool
	// OneKind has only the routes of one kind take part where an HTTPRoute and a
	// GRPCRoute at a listener match a host: those of the kind of the oldest one. Else
	// the routes of both kinds compete.
	OneKind bool
	// FallBack has a request that no rule of the most specific hostname matches go to the
	// routes with a less specific one. Else nothing serves it.
	FallBack bool
	// Regex is where regular expressions of paths come.
	Regex RegexOrder
}

// RegexOrder is the precedence of regular expressions of paths, and of gRPC services and
// methods. Gateway API leaves it to the implementation.
type RegexOrder uint8

// The orders that implementations have.
const (
	RegexLast       RegexOrder = iota // after all other paths
	RegexFirst                        // before all other paths
	RegexAfterExact                   // after exact paths, before prefixes; in gRPC by the length of its text
)
