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

// compareMatches is compare for the conditions alone. The precedence of regular expressions
// is the implementation's.
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
// HTTP method, the number of its headers, of those with an exact value, of its parameters, and
// of those with an exact value. All matches, of whatever kind, are in one order by it.
type matchRank [8]int

func (m *routeMatch) rank(order RegexOrder) matchRank {
	out := matchRank{0: m.pathRank(order), 4: len(m.headers), 6: len(m.params)}
	if !m.grpc {
		out[3] = boolRank(m.verb != "")
	}
	switch {
	case order == RegexFirst && m.regexPath():
	case m.grpc:
		out[1], out[2] = len(m.service.value), len(m.method.value)
	default:
		out[1] = len(m.path.value)
	}
	if order == RegexAfterExact {
		out[5], out[7] = m.headers.exact(), m.params.exact()
	}
	return out
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
		return [...]api.Precedence{1: api.ByLongerPath, api.ByGRPCMethod, api.ByMethod, api.ByHeaders, api.ByHeaders, api.ByQueryParams, api.ByQueryParams}[i]
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
	// OwnHostnames has the most specific hostname of the routes themselves decide, where they
	// have the same one in common with their listeners. Else they compete.
	OwnHostnames bool
	// Regex is where regular expressions come.
	Regex RegexOrder
}

// RegexOrder is the precedence of regular expressions. Gateway API leaves it to the
// implementation.
type RegexOrder uint8

// The orders that implementations have: of the regular expressions of paths, and of gRPC
// services and methods, and of those of headers and query parameters.
const (
	// RegexLast is after all other paths, the longest text first, and as exact values.
	RegexLast RegexOrder = iota
	// RegexFirst is before all other paths, whatever the length of the text, and as exact values.
	RegexFirst
	// RegexAfterExact is after exact paths and before prefixes, the longest text first, in gRPC
	// with the exact ones; and after exact values of as many headers or parameters.
	RegexAfterExact
)
