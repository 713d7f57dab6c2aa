package guard

import (
	"fmt"
	"slices"

	"overrule.dev/overrule/internal/gateway"
)

// addReadings adds the readings under which requests may go elsewhere.
func (at *gatewayRouters) addReadings(routes []*gateway.Route) {
	add := func(reading gateway.Reading, why string, search bool) {
		at.others = append(at.others, otherRouters{gatewayRouters{mesh: at.mesh, before: at.before.With(reading), after: at.after.With(reading)}, why, search})
	}
	if at.before.SharesPorts() || at.after.SharesPorts() {
		why := unsureIsolation
		if at.mesh {
			why = unsureMeshKind
		}
		add(gateway.Reading{Shared: true}, why, true)
	}
	if !at.mesh && (at.before.HasConflicts() || at.after.HasConflicts()) {
		add(gateway.Reading{LastListener: true}, unsureConflict, true)
	}
	regex := at.hasRegexPaths(routes)
	add(gateway.Reading{Regex: gateway.RegexFirst}, unsurePrecedence, regex)
	add(gateway.Reading{Regex: gateway.RegexAfterExact}, unsurePrecedence, regex)
}

// hasRegexPaths reports whether some routes, or others that compete with them for
// requests, have regular expressions as paths.
func (at *gatewayRouters) hasRegexPaths(routes []*gateway.Route) bool {
	if slices.ContainsFunc(routes, (*gateway.Route).HasRegexPaths) {
		return true
	}
	if at.mesh {
		return false
	}
	seen := make(map[string]bool) // hostnames and parents: such routes have the same others
	for _, route := range routes {
		key := fmt.Sprint(route.Namespace, route.Kind, route.Hostnames, route.Parents)
		if seen[key] {
			continue
		}
		seen[key] = true
		for _, router := range []*gateway.Router{at.before, at.after} {
			for n := range router.Neighbors(route) {
				if n.HasRegexPaths() {
					return true
				}
			}
		}
	}
	return false
}

// Why implementations may serve a request in different ways.
const (
	unsureRegex      = "whether the regular expressions of its matches match such a request cannot be decided"
	unsurePrecedence = "the precedence of regular expressions depends on the implementation"
	unsureConflict   = "listeners of the gateway conflict, with the same port and hostname"
	unsureKind       = "the implementation may accept either the HTTPRoute or the GRPCRoute on this hostname"
	unsureMeshKind   = "the implementation may use the routes of either kind at the Service"
	unsureIsolation  = "it depends on whether the implementation isolates listeners"
)

// sameRuleAfter reports whether a request stays on its rule and listener.
func (at *gatewayRouters) sameRuleAfter(m gateway.Move) bool {
	from, to := m.From.Route, m.To.Route
	return from.Ref() == to.Ref() && m.SameListener(at.before, at.after) &&
		(from == to && m.From.Rule == m.To.Rule || from != to && gateway.MatchRules(from, to)[m.To.Rule] == m.From.Rule)
}

// unsure says why an implementation may not move a request so, "" if each does.
func (at *gatewayRouters) unsure(m gateway.Move) string {
	if m.Request == nil {
		return unsureRegex
	}
	if m.From.Route.Kind != m.To.Route.Kind && m.Request.Method != "" && m.From.Route.Kind != gateway.KindTLSRoute && m.To.Route.Kind != gateway.KindTLSRoute {
		if at.mesh {
			return unsureMeshKind
		}
		return unsureKind
	}
	if at.before.Conflicted(m.Request) || at.after.Conflicted(m.Request) {
		return unsureConflict
	}
	same := func(r *gatewayRouters) bool {
		return r.before.Route(m.Request).Same(m.From) && r.after.Route(m.Request).Same(m.To)
	}
	if !same(at) {
		return at.others[0].why // it was found under another reading
	}
	for i := range at.others {
		if !same(&at.others[i].gatewayRouters) {
			return at.others[i].why
		}
	}
	return ""
}
