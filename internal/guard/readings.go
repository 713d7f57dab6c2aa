package guard

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"overrule.dev/overrule/internal/gateway"
)

// routing has the routers of a gateway under a reading: the plain one, or another one.
type routing struct {
	reading       gateway.Reading
	before, after *gateway.Router
	why           string // requests may go elsewhere, "" for the plain reading
}

// competing says what the routes that compete for requests have that implementations may
// read in different ways.
type competing struct {
	regexPaths, regexValues, http, grpc bool
	hostnames                           bool // some have others than others of the same router
	ties                                bool // some have others, but the same ones in common with their listeners
}

func (c *competing) add(r *gateway.Route) {
	paths, values := r.HasRegex()
	c.regexPaths, c.regexValues = c.regexPaths || paths, c.regexValues || values
	c.http = c.http || r.Kind == gateway.KindHTTPRoute
	c.grpc = c.grpc || r.Kind == gateway.KindGRPCRoute
}

// readings yields the routers under the plain reading, then those under each other one that may
// decide where requests to some routes go: those that differ in the fewest respects first.
func (at *gatewayRouters) readings(routes ...*gateway.Route) iter.Seq[routing] {
	return func(yield func(routing) bool) {
		if !yield(at.under(gateway.Reading{})) {
			return
		}
		c := at.competing(routes)
		all := []gateway.Reading{{}}
		if c.regexPaths {
			all = append(all, gateway.Reading{Regex: gateway.RegexFirst})
		}
		if c.regexPaths || c.regexValues {
			all = append(all, gateway.Reading{Regex: gateway.RegexAfterExact})
		}
		also := func(differs bool, edit func(r *gateway.Reading)) {
			for i := range len(all) * btoi(differs) {
				r := all[i]
				edit(&r)
				all = append(all, r)
			}
		}
		also(c.ties, func(r *gateway.Reading) { r.OwnHostnames = true })
		also(c.http && c.grpc && !at.mesh, func(r *gateway.Reading) { r.OneKind = true })
		also(at.sharesPorts(), func(r *gateway.Reading) { r.Shared = true })
		respects := func(r gateway.Reading) int {
			return btoi(r.Shared) + btoi(r.OneKind) + btoi(r.OwnHostnames) + btoi(r.Regex != gateway.RegexLast)
		}
		slices.SortStableFunc(all, func(a, b gateway.Reading) int { return respects(a) - respects(b) })
		for _, r := range all[1:] {
			if !yield(at.under(r)) {
				return
			}
		}
	}
}

// sharesPorts reports whether some request can come in by several listeners.
func (at *gatewayRouters) sharesPorts() bool {
	return at.before != nil && at.before.SharesPorts() || at.after != nil && at.after.SharesPorts()
}

// fallBacks yields each reading in which requests fall back to routes with less specific
// hostnames, and the same one in which they do not, if some routes compete with others that
// have another hostname, by themselves or by their listeners.
func (at *gatewayRouters) fallBacks(routes ...*gateway.Route) iter.Seq2[routing, routing] {
	return func(yield func(with, without routing) bool) {
		if at.mesh || at.before == nil || at.after == nil || !at.sharesPorts() && !at.competing(routes).hostnames {
			return
		}
		for without := range at.readings(routes...) {
			reading := without.reading
			reading.FallBack = true
			if !yield(at.under(reading), without) {
				return
			}
		}
	}
}

// leaves reports whether nothing serves the request of a move before or after the write: else
// a reading in which it falls back serves it by the same rules.
func (r routing) leaves(m gateway.Move) bool {
	return r.before.Route(m.Request).Route == nil || r.after.Route(m.Request).Route == nil
}

// under returns the routers under a reading.
func (at *gatewayRouters) under(r gateway.Reading) routing {
	if known, ok := at.byReading[r]; ok {
		return known
	}
	out := routing{reading: r}
	if at.before != nil {
		out.before = at.before.With(r)
	}
	if at.after != nil {
		out.after = at.after.With(r)
	}
	switch {
	case r.Shared && at.mesh:
		out.why = unsureMeshKind
	case r.Shared:
		out.why = unsureIsolation
	case r.OneKind:
		out.why = unsureKind
	case r.OwnHostnames:
		out.why = unsureOwnHostnames
	case r.Regex != gateway.RegexLast:
		out.why = unsurePrecedence
	}
	put(&at.byReading, r, out)
	return out
}

// competing says what some routes, and others that compete with them for requests, have.
func (at *gatewayRouters) competing(routes []*gateway.Route) competing {
	var out competing
	for _, route := range routes {
		key := competitorsKey(route)
		c, ok := at.competitors[key]
		if !ok {
			for _, router := range []*gateway.Router{at.before, at.after} {
				if router == nil {
					continue
				}
				var first *gateway.Route
				for n := range router.Neighbors(route) {
					c.add(n)
					first = cmp.Or(first, n)
					c.hostnames = c.hostnames || !slices.Equal(n.Hostnames, first.Hostnames)
				}
				c.ties = c.ties || c.hostnames && !at.mesh && router.HostnamesTie(route)
			}
			put(&at.competitors, key, c)
		}
		out.add(route)
		out.regexPaths, out.regexValues = out.regexPaths || c.regexPaths, out.regexValues || c.regexValues
		out.http, out.grpc, out.hostnames, out.ties = out.http || c.http, out.grpc || c.grpc, out.hostnames || c.hostnames, out.ties || c.ties
	}
	return out
}

// competitorsKey has what decides which others a route competes with.
func competitorsKey(r *gateway.Route) string {
	parts := append([]string{r.Namespace, r.Kind}, r.Hostnames...)
	for _, p := range r.Parents {
		parts = append(parts, p.Kind, p.Namespace, p.Name, p.Section, strconv.Itoa(int(p.Port)))
	}
	return strings.Join(parts, " ")
}

// Why implementations may serve a request in different ways.
const (
	unsureRegex        = "whether the regular expressions of its matches match such a request cannot be decided"
	unsurePrecedence   = "the precedence of regular expressions depends on the implementation"
	unsureKind         = "the implementation may accept either the HTTPRoute or the GRPCRoute on this hostname"
	unsureMeshKind     = "the implementation may use the routes of either kind at the Service"
	unsureIsolation    = "it depends on whether the implementation isolates listeners"
	unsureAwaited      = "no route serves such requests there yet"
	unsureOwnHostnames = "it depends on whether the implementation compares the routes' own hostnames or those in common with the listener"
	unsureHostname     = "the implementation may serve requests that no rule on their hostname matches by routes with a less specific hostname"
)

// sameRuleAfter reports whether a request stays on its rule and listener.
func sameRuleAfter(m gateway.Move) bool {
	from, to := m.From.Route, m.To.Route
	return from.Ref() == to.Ref() && m.SameListener() &&
		(from == to && m.From.Rule == m.To.Rule || from != to && gateway.MatchRules(from, to)[m.To.Rule] == m.From.Rule)
}

// flow returns where a request goes, and where it goes instead in implementations that
// send it to the same rule before the write. why is set if another reading than the plain
// one was followed. A request that an implementation sends to another rule before the
// write tells nothing: else an object that makes it unsure where requests go would take
// them from the overrides of others. Nor do matches of which it is not known whether they
// have a request in common, but for other requests of the rule, which it may keep.
func (at *gatewayRouters) flow(m gateway.Move, why string) flow {
	out := flow{Move: m}
	request := cmp.Or(m.Request, m.Other)
	if request == nil || m.Request != nil && why == "" && sameRuleAfter(m) {
		return out // nothing was searched, or it is served as before, whatever other readings have
	}
	for r := range at.readings(m.From.Route, m.To.Route) {
		to, other := r.after.Route(request), cmp.Or(r.why, why)
		if m.Request == nil {
			other = unsureRegex
		}
		if to.Route != nil && !to.Same(m.To) && r.before.Route(request).Same(m.From) {
			out.instead = append(out.instead, servedInstead{to, other, r})
		}
	}
	return out
}
