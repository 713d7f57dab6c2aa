package guard

import (
	"fmt"
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// requests knows where requests go before and after a write (SEMANTICS section 9).
type requests struct {
	*write

	gateways map[api.Ref]*gatewayRouters
	reroutes *reroutedObject      // nil until it is asked for
	moves    map[rulePlace][]flow // nil if the write cannot move any
	stake    *stake               // nil until it is asked for
	// work is what the search costs; unsureWork is that of requests that move in few
	// implementations, besideWork that of those that may move in all.
	work, unsureWork, besideWork int
	last                         destinations // of the last path: overrides come path by path
	// edited are the routes that the write changes, so that moves have all requests of
	// their rules.
	edited map[api.Ref]bool
}

// gatewayRouters are the routers of a gateway, or of a Service in a mesh, before and after
// the write; nil where it does not exist.
type gatewayRouters struct {
	mesh          bool
	settled       bool // the write moves no requests
	before, after *gateway.Router
	arrivals      arrivals // nil until they are needed
	// arrivalsUnknown is set if so many matches compete that arrivals has some that are
	// not certain.
	arrivalsUnknown bool
	// Memos of readings.
	competitors map[string]competing
	byReading   map[gateway.Reading]routing
}

// rulePlace is a rule of a route at a listener, by names. In a mesh, gateway is zero.
type rulePlace struct {
	gateway, parent, route api.Ref
	listener, client       string
	rule                   int
}

// listenerOf returns the listener of a path at a gateway.
func listenerOf(p *gateway.Path) gateway.ListenerMatch {
	return gateway.ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener}
}

func placeOf(l *gateway.ListenerMatch, route *gateway.Route, rule int) rulePlace {
	place := rulePlace{parent: l.Parent(), route: route.Ref(), listener: l.Listener.Name, client: l.Client, rule: rule}
	if l.Gateway != nil {
		place.gateway = l.Gateway.Ref()
	}
	return place
}

func placeOfServed(s gateway.Served) rulePlace { return placeOf(s.Listener, s.Route, s.Rule) }

// entryOf names the gateway or the Service of a path.
func entryOf(p *gateway.Path) api.Ref {
	if p.Service != nil {
		return p.Service.Ref()
	}
	return p.Gateway.Ref()
}

// flow is a request of a rule before the write, and where it goes after it.
type flow struct {
	gateway.Move

	// instead is where implementations send it that have it on the same rule before the
	// write, and on another one after it.
	instead []servedInstead
	// unsure says why implementations may not serve it at all, "" if they do.
	unsure string
}

// servedInstead is where a request goes after the write under another reading.
type servedInstead struct {
	gateway.Served

	why string  // it may go there
	by  routing // that has it there
}

// shown returns what returns the request for people, nil where none is known.
func (f *flow) shown() func() *gateway.Request {
	if f.Request == nil {
		return nil
	}
	m := f.Move
	return m.Shown
}

// isSure reports whether a request goes the same way in each implementation.
func (f *flow) isSure() bool { return len(f.instead) == 0 && f.unsure == "" }

// sameInstead reports whether a request may go to the same other rules as another one.
func (f *flow) sameInstead(o flow) bool {
	return f.unsure == o.unsure && slices.EqualFunc(f.instead, o.instead, func(a, b servedInstead) bool { return a.Same(b.Served) })
}

// addFlow adds a flow between two rules, unless it adds nothing to those that are known: one
// that each implementation has is enough.
func addFlow(known []flow, f flow) []flow {
	same := func(o flow) bool { return o.From.Same(f.From) && o.To.Same(f.To) }
	switch {
	case slices.ContainsFunc(known, func(o flow) bool { return same(o) && (o.isSure() || o.sameInstead(f)) }):
		return known
	case f.isSure():
		known = slices.DeleteFunc(known, same)
	}
	return append(known, f)
}

// readsRequests reports whether requests on a path are evaluated: those of routes at
// gateways, and those of routes that serve HTTP requests to Services.
func readsRequests(p *gateway.Path) bool {
	if p.Route == nil || len(p.Route.Rules) == 0 {
		return false
	}
	return p.Gateway != nil && p.Listener != nil || p.Service != nil && gateway.ServesMesh(p.Route.Kind)
}

// trackRequests finds the requests that the write moves, where overrides are at stake.
func (ev *requests) trackRequests() error {
	re := ev.rerouted()
	if len(re.entries) == 0 {
		return nil
	}
	ev.moves, ev.edited = make(map[rulePlace][]flow), make(map[api.Ref]bool)
	for _, r := range slices.Concat(re.before, re.after) {
		ev.edited[r.Ref()] = true
	}
	limits, matters := ev.moveLimits()
	if !matters {
		return nil
	}
	for _, entry := range re.entries {
		at := ev.routersOf(entry)
		if at.before == nil || at.after == nil {
			continue
		}
		if err := ev.trackGateway(entry, at, re, limits); err != nil {
			return err
		}
	}
	return nil
}

// moveLimits returns the limits of a search for moves that may take an override from
// requests, and whether any may.
func (ev *requests) moveLimits() (limits gateway.MoveLimits, matters bool) {
	limits = gateway.MoveLimits{Known: ev.knows, Work: &ev.work}
	if ev.everyKindUnlisted {
		return limits, true
	}
	at := ev.stakeOf((*policykind.Kind).MayOverride)
	if at == nil {
		return limits, false
	}
	limits.Policies, limits.AtStake = at.policies, mayLose
	return limits, true
}

// routersOf returns the routers of a gateway or a Service.
func (ev *requests) routersOf(ref api.Ref) *gatewayRouters {
	if at := ev.gateways[ref]; at != nil {
		return at
	}
	at := &gatewayRouters{mesh: ref.Kind == gateway.KindService}
	router := func(v *snapshot.View) *gateway.Router {
		switch o := v.Get(ref).(type) {
		case *gateway.Gateway:
			return v.Router(o, gateway.Reading{}).ByPort()
		case *gateway.Service:
			return effective.MeshRouter(v, o, ev.before, ev.after)
		default:
			return nil
		}
	}
	at.before, at.after = router(ev.before), router(ev.after)
	put(&ev.gateways, ref, at)
	return at
}

// trackGateway finds the requests that the write moves at a gateway.
func (ev *requests) trackGateway(entry api.Ref, at *gatewayRouters, re reroutedObject, limits gateway.MoveLimits) error {
	if at.settled = gateway.NothingMoves(at.before, at.after, re.before, re.after); at.settled {
		return nil
	}
	re = ev.reroutedAt(at, re)
	routes := slices.Concat(re.before, re.after)
	if at.mesh { // all routes of the Service compete
		routes = slices.Concat(slices.Collect(ev.before.RoutesOf(entry)), slices.Collect(ev.after.RoutesOf(entry)))
	}
	for r := range at.readings(routes...) {
		if err := ev.trackMoves(at, r, re, limits); err != nil {
			return err
		}
		if r.reading.OneKind {
			others := reroutedObject{before: r.before.OtherKind(r.after, routes, ev.before.RoutesOf)}
			if err := ev.trackUnsure(r, others, limits, unsureKind, func(gateway.Move) bool { return true }); err != nil {
				return err
			}
		}
	}
	for with, without := range at.fallBacks(routes...) {
		if err := ev.trackUnsure(with, re, limits, unsureHostname, without.leaves); err != nil {
			return err
		}
	}
	return nil
}

// movesUnder yields requests that the write moves under a reading. The error is that of the
// budget, which ends it.
func (ev *requests) movesUnder(r routing, re reroutedObject, limits gateway.MoveLimits, err *error) iter.Seq[gateway.Move] {
	limits.Alive = func() bool {
		*err = ev.budget.Alive()
		return *err == nil
	}
	return gateway.Moves(r.before, r.after, re.before, re.after, limits)
}

// trackMoves adds the moves of requests under one reading.
func (ev *requests) trackMoves(at *gatewayRouters, r routing, re reroutedObject, limits gateway.MoveLimits) (err error) {
	for m := range ev.movesUnder(r, re, limits, &err) {
		ev.add(at.flow(m, r.why))
	}
	return err
}

// trackUnsure adds those moves of requests under a reading that count, as ones that only
// some implementations have.
func (ev *requests) trackUnsure(r routing, re reroutedObject, limits gateway.MoveLimits, why string, counts func(gateway.Move) bool) (err error) {
	limits.Work, limits.MaxWork = &ev.unsureWork, maxMovedRulesWork
	for m := range ev.movesUnder(r, re, limits, &err) {
		if m.Request != nil && counts(m) {
			ev.add(flow{Move: m, unsure: why})
		}
	}
	return err
}

// add adds requests that the write moves.
func (ev *requests) add(f flow) {
	from := placeOfServed(f.From)
	ev.moves[from] = addFlow(ev.moves[from], f)
}

// knows reports whether requests between two rules are known to move in each
// implementation.
func (ev *requests) knows(from, to gateway.Served) bool {
	return slices.ContainsFunc(ev.moves[placeOfServed(from)], func(f flow) bool { return f.To.Same(to) && f.isSure() })
}

// from returns where the requests of a path's rules go after the write, if that moves
// some.
func (ev *requests) from(p *gateway.Path) []flow {
	if len(ev.moves) == 0 || !readsRequests(p) {
		return nil
	}
	return ofRules(ev.moves, ev.routersOf(entryOf(p)).before, p)
}

// ofRules returns what is known of the rules of a path.
func ofRules[T any](known map[rulePlace][]T, router *gateway.Router, p *gateway.Path) []T {
	var out []T
	for _, l := range router.ListenersAt(p) {
		for rule := range p.Route.Rules {
			if p.Rule < 0 || p.Rule == rule {
				out = append(out, known[placeOf(&l, p.Route, rule)]...)
			}
		}
	}
	return out
}

// mayMove reports whether the write may move requests of a path.
func (ev *requests) mayMove(p *gateway.Path) bool {
	return ev.moves != nil && readsRequests(p) && (ev.edited[p.Route.Ref()] || len(ev.from(p)) > 0)
}

// destinations are where the requests of a path go after the write at its gateway.
type destinations struct {
	of   *gateway.Path
	to   []flow
	ends bool // some are served by nothing there any more
	// undecided is set if it is not known which requests the path serves before the write.
	undecided bool
}

// destinations returns where the requests of a path go after the write at its gateway.
func (ev *requests) destinations(x *gateway.Path) *destinations {
	if ev.last.of == x {
		return &ev.last
	}
	out := destinations{of: x, to: slices.Clone(ev.from(x))}
	at := ev.routersOf(entryOf(x))
	for r := range at.readings(x.Route) {
		for m := range r.witnesses(x) {
			out.undecided = out.undecided || m.Request == nil && !m.Unsearched && r.why == ""
			if m.To.Route == nil { // or it is not known
				out.ends = true
			} else {
				out.to = addFlow(out.to, at.flow(m, r.why))
			}
		}
	}
	for with, without := range at.fallBacks(x.Route) {
		for m := range with.witnesses(x) {
			if m.To.Route != nil && without.leaves(m) {
				out.to = addFlow(out.to, flow{Move: m, unsure: unsureHostname})
			}
		}
	}
	ev.last = out
	return &ev.last
}

// witnesses yields requests of a path before the write, and where they go.
func (r routing) witnesses(x *gateway.Path) iter.Seq[gateway.Move] {
	return r.before.Witnesses(x, r.after)
}

// staying returns a request that stays on the path of a pair, and whether there may be one.
func (ev *requests) staying(p effective.Pair) (flow, bool) {
	x, y := &p.Before.Path, &p.After.Path
	if !readsRequests(x) || !readsRequests(y) {
		return flow{}, true
	}
	at := ev.routersOf(entryOf(x))
	for _, f := range ev.from(x) {
		if f.unsure == "" && f.To.IsOn(y) {
			return f, true
		}
	}
	for r := range at.readings(x.Route, y.Route) {
		for m := range r.witnesses(x) {
			if m.Request == nil {
				return flow{Move: gateway.Move{Unsearched: m.Unsearched}}, true
			}
			if m.To.Route != nil && m.To.IsOn(y) {
				return flow{Move: m}, true
			}
		}
	}
	if ev.moves == nil {
		return flow{}, false
	}
	arrivals, err := ev.arrivalsAt(at) // also where no policy differs
	i := slices.IndexFunc(ofRules(arrivals, at.after, y), func(from gateway.Served) bool { return from.IsOn(x) })
	return flow{Move: gateway.Move{Unsearched: at.arrivalsUnknown}}, i >= 0 || err != nil
}

// arrivals are the rules from which requests move, by the rule to which they do.
type arrivals map[rulePlace][]gateway.Served

// arrivalsAt finds the requests that the write moves between the rules at a gateway,
// whatever policies apply to them.
func (ev *requests) arrivalsAt(at *gatewayRouters) (arrivals, error) {
	if at.arrivals != nil {
		return at.arrivals, nil
	}
	at.arrivals = make(arrivals)
	var err error
	plain := at.under(gateway.Reading{})
	for m := range ev.movesUnder(plain, ev.reroutedAt(at, ev.rerouted()), gateway.MoveLimits{Work: &ev.work}, &err) {
		to := placeOfServed(m.To)
		at.arrivalsUnknown = at.arrivalsUnknown || m.Unsearched
		if !slices.ContainsFunc(at.arrivals[to], m.From.Same) {
			at.arrivals[to] = append(at.arrivals[to], m.From)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find where requests were served: %w", err)
	}
	return at.arrivals, nil
}

// editsRouting reports whether the write edits a route, a gateway, a listener set or a namespace
// in a way that may move requests.
func (ev *requests) editsRouting() bool {
	_, route := ev.change.Object().(*gateway.Route)
	return ev.change.Before != nil && ev.change.After != nil && ev.moves != nil && (route || ev.editsListeners())
}

// newRequests reports whether a path serves requests that nothing served before the write, or
// may, and whether nothing did so in any implementation.
func (at *gatewayRouters) newRequests(y *gateway.Path) (some, everywhere bool) {
	for m := range at.after.Witnesses(y, at.before) {
		if m.To.Route != nil {
			continue
		}
		some, everywhere = true, m.Request != nil
		for r := range at.readings(y.Route) {
			everywhere = everywhere && r.before.Route(m.Request).Route == nil
		}
		for with := range at.fallBacks(y.Route) {
			everywhere = everywhere && with.before.Route(m.Request).Route == nil
		}
		if everywhere {
			break
		}
	}
	return some, everywhere
}
