package guard

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// otherReading has the routers of a gateway under a reading that is not the plain one.
type otherReading struct {
	reading       gateway.Reading
	before, after *gateway.Router
	why           string // requests may go elsewhere
}

// competing says what the routes that compete for requests have that implementations may
// read in different ways.
type competing struct {
	regex, http, grpc bool
	hostnames         bool // more than one
}

func (c *competing) add(r *gateway.Route) {
	c.regex = c.regex || r.HasRegexPaths()
	c.http = c.http || r.Kind == gateway.KindHTTPRoute
	c.grpc = c.grpc || r.Kind == gateway.KindGRPCRoute
}

// readings returns the routers under each other reading that may decide where requests to
// some routes go: those that differ from the plain one in the fewest respects first.
func (at *gatewayRouters) readings(routes ...*gateway.Route) []otherReading {
	var c competing
	for _, r := range routes {
		of := at.competingWith(r)
		c.regex, c.http, c.grpc, c.hostnames = c.regex || of.regex, c.http || of.http, c.grpc || of.grpc, c.hostnames || of.hostnames
	}
	if known, ok := at.others[c]; ok {
		return known
	}
	shared, kinds, regex := []bool{false}, []bool{false}, []gateway.RegexOrder{gateway.RegexLast}
	if at.before != nil && at.before.SharesPorts() || at.after != nil && at.after.SharesPorts() {
		shared = append(shared, true)
	}
	if c.http && c.grpc && !at.mesh {
		kinds = append(kinds, true)
	}
	if c.regex {
		regex = append(regex, gateway.RegexFirst, gateway.RegexAfterExact)
	}
	var out []otherReading
	for respects := range 4 {
		for _, s := range shared {
			for _, k := range kinds {
				for _, x := range regex {
					if r := (gateway.Reading{Shared: s, OneKind: k, Regex: x}); respects > 0 && btoi(s)+btoi(k)+btoi(x != gateway.RegexLast) == respects {
						out = append(out, at.under(r))
					}
				}
			}
		}
	}
	if at.others == nil {
		at.others = make(map[competing][]otherReading)
	}
	at.others[c] = out
	return out
}

// allReadings yields the plain reading, then the others as readings does.
func (at *gatewayRouters) allReadings(routes ...*gateway.Route) iter.Seq[otherReading] {
	return func(yield func(otherReading) bool) {
		if !yield(otherReading{before: at.before, after: at.after}) {
			return
		}
		for _, r := range at.readings(routes...) {
			if !yield(r) {
				return
			}
		}
	}
}

// fallBackReading is a reading in which requests fall back to routes with less specific
// hostnames, and the same one in which they do not.
type fallBackReading struct{ with, without otherReading }

// fallBacks returns these readings, if some routes compete with others that have another
// hostname, by themselves or by their listeners.
func (at *gatewayRouters) fallBacks(routes ...*gateway.Route) []fallBackReading {
	if at.mesh || at.before == nil || at.after == nil {
		return nil
	}
	if !at.before.SharesPorts() && !at.after.SharesPorts() && !slices.ContainsFunc(routes, func(r *gateway.Route) bool { return at.competingWith(r).hostnames }) {
		return nil
	}
	var out []fallBackReading
	for r := range at.allReadings(routes...) {
		reading := r.reading
		reading.FallBack = true
		out = append(out, fallBackReading{at.under(reading), r})
	}
	return out
}

// move returns the move of a request that falls back, if nothing serves the request before or
// after the write where requests do not: else both readings serve it by the same rules.
func (r *fallBackReading) move(m gateway.Move) (requestMove, bool) {
	if m.Request == nil || r.without.before.Route(m.Request).Route != nil && r.without.after.Route(m.Request).Route != nil {
		return requestMove{}, false
	}
	return unsureMove(m, unsureHostname)
}

// unsureMove returns the move of a request that some implementations make.
func unsureMove(m gateway.Move, why string) (requestMove, bool) {
	return requestMove{from: m.From, to: m.To, shown: m.Shown, unsure: why}, m.Request != nil && m.To.Route != nil
}

// under returns the routers under a reading.
func (at *gatewayRouters) under(r gateway.Reading) otherReading {
	if known, ok := at.byReading[r]; ok {
		return known
	}
	out := otherReading{reading: r}
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
	default:
		out.why = unsurePrecedence
	}
	if at.byReading == nil {
		at.byReading = make(map[gateway.Reading]otherReading)
	}
	at.byReading[r] = out
	return out
}

// competingWith says what a route, and others that compete with it for requests, have.
func (at *gatewayRouters) competingWith(route *gateway.Route) competing {
	key := fmt.Sprint(route.Namespace, route.Kind, route.Hostnames, route.Parents) // such routes have the same others
	c, ok := at.competing[key]
	if !ok {
		for _, router := range []*gateway.Router{at.before, at.after} {
			if router == nil {
				continue
			}
			for n := range router.Neighbors(route) {
				c.add(n)
				c.hostnames = c.hostnames || !slices.Equal(n.Hostnames, route.Hostnames)
			}
		}
		if at.competing == nil {
			at.competing = make(map[string]competing)
		}
		at.competing[key] = c
	}
	c.add(route)
	return c
}

// Why implementations may serve a request in different ways.
const (
	unsureRegex      = "whether the regular expressions of its matches match such a request cannot be decided"
	unsurePrecedence = "the precedence of regular expressions depends on the implementation"
	unsureKind       = "the implementation may accept either the HTTPRoute or the GRPCRoute on this hostname"
	unsureMeshKind   = "the implementation may use the routes of either kind at the Service"
	unsureIsolation  = "it depends on whether the implementation isolates listeners"
	unsureAwaited    = "no route serves such requests there yet"
	unsureHostname   = "the implementation may serve requests that no rule on their hostname matches by routes with a less specific hostname"
)

// sameRuleAfter reports whether a request stays on its rule and listener.
func sameRuleAfter(m gateway.Move) bool {
	from, to := m.From.Route, m.To.Route
	return from.Ref() == to.Ref() && m.SameListener() &&
		(from == to && m.From.Rule == m.To.Rule || from != to && gateway.MatchRules(from, to)[m.To.Rule] == m.From.Rule)
}

// move returns where a request goes, and where it goes instead in implementations that
// send it to the same rule before the write. why is set if another reading than the plain
// one was followed. A request that an implementation sends to another rule before the
// write tells nothing: else an object that makes it unsure where requests go would take
// them from the overrides of others. Nor do matches of which it is not known whether they
// have a request in common, but for other requests of the rule, which it may keep.
func (at *gatewayRouters) move(m gateway.Move, why string) requestMove {
	out := requestMove{from: m.From, to: m.To, request: m.Request, shown: m.Shown, unsearched: m.Unsearched}
	request := cmp.Or(m.Request, m.Other)
	if request == nil || m.Request != nil && why == "" && sameRuleAfter(m) {
		return out // nothing was searched, or it is served as before, whatever other readings have
	}
	for r := range at.allReadings(m.From.Route, m.To.Route) {
		to, other := r.after.Route(request), cmp.Or(r.why, why)
		if m.Request == nil {
			other = unsureRegex
		}
		if to.Route != nil && !to.Same(m.To) && r.before.Route(request).Same(m.From) {
			out.instead = append(out.instead, servedInstead{to, other})
		}
	}
	return out
}

// keptInstead says why an override of a path may be kept for the requests that a successor
// takes over, "" if it is lost for them in every implementation.
func (c *overrideCheck) keptInstead(o effective.Override, by requestMove) (string, error) {
	if by.unsure != "" {
		return by.unsure, nil
	}
	for _, s := range by.instead {
		kept, err := c.keptAt(o, s.Served)
		if err != nil || kept {
			return s.why, err
		}
	}
	return "", nil
}

// keptAt reports whether an override of the path is kept for requests that a rule serves
// after the write.
func (c *overrideCheck) keptAt(o effective.Override, to gateway.Served) (bool, error) {
	x := c.paths.Before
	paths, err := c.ev.pathsThrough(to.Route.Ref(), x.Kind)
	if err != nil {
		return false, err
	}
	paths = slices.DeleteFunc(pathsOf(to, paths, x.Path.Client), func(y *effective.Effective) bool {
		return o.Level >= gateway.LevelBackend && !sameBackend(&y.Path, &x.Path) && !takesOver(&x.Path, &y.Path)
	})
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(y *effective.Effective) bool {
		lost, _ := c.lostOn(o, y)
		return lost
	}), nil
}
