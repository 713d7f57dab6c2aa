package guard

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// requests knows where requests go before and after a write (SEMANTICS section 9).
type requests struct {
	gateways map[api.Ref]*gatewayRouters
	moves    map[rulePlace][]requestMove // nil if the write moves none
	// paths through routes before and after the write
	pathsBefore, pathsAfter map[candidatesKey][]*effective.Effective
	// steps is how many matches were looked at, and work what that cost; unsureWork is that
	// of requests that move in few implementations.
	steps, work, unsureWork int
	// last is what was found of the last path: overrides come path by path.
	last struct {
		destinations, staying *gateway.Path
		to                    []requestMove
		ends                  bool
		stays                 requestMove
		mayStay               bool
	}
	// followed are the pairs of paths whose rules were compared since one of them begins or
	// ends.
	followed map[followedPair]bool
	// rerouted are the routes that the write changes, so that moves have all requests of
	// their rules.
	rerouted map[api.Ref]bool
}

// gatewayRouters are the routers of a gateway, or of a Service in a mesh, before and after
// the write; nil where it does not exist.
type gatewayRouters struct {
	mesh          bool
	before, after *gateway.Router
	arrivals      arrivals // nil until they are needed
	// arrivalsUnknown is set if so many matches compete that arrivals has some that are
	// not certain.
	arrivalsUnknown bool
	// Memos of readings.
	competing map[string]competing
	others    map[competing][]otherReading
	byReading map[gateway.Reading]otherReading
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

// requestMove is where requests of a rule go after the write.
type requestMove struct {
	from, to gateway.Served
	request  *gateway.Request // one of them, nil if none is known
	// shown returns one of them, nil if there may be none. It is nil itself for no move.
	shown func() *gateway.Request
	// unsearched is set if too many matches compete to look for one.
	unsearched bool
	// instead is where implementations send it that have it on the same rule before the
	// write, and on another one after it.
	instead []servedInstead
	// unsure says why implementations may not serve it at all, "" if they do.
	unsure string
}

// servedInstead is where a request goes after the write under another reading.
type servedInstead struct {
	gateway.Served

	why string // it may go there
}

// isSure reports whether a move is the same in each implementation.
func (m *requestMove) isSure() bool { return len(m.instead) == 0 && m.unsure == "" }

// sameInstead reports whether a move may go to the same other rules as another one.
func (m *requestMove) sameInstead(o requestMove) bool {
	return m.unsure == o.unsure && slices.EqualFunc(m.instead, o.instead, func(a, b servedInstead) bool { return a.Same(b.Served) })
}

// addMove adds a move of requests between two rules, unless it adds nothing to those that
// are known: one that each implementation makes is enough.
func addMove(known []requestMove, m requestMove) []requestMove {
	same := func(o requestMove) bool { return o.from.Same(m.from) && o.to.Same(m.to) }
	switch {
	case slices.ContainsFunc(known, func(o requestMove) bool { return same(o) && (o.isSure() || o.sameInstead(m)) }):
		return known
	case m.isSure():
		known = slices.DeleteFunc(known, same)
	}
	return append(known, m)
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
func (ev *evaluation) trackRequests() error {
	re := ev.rerouted()
	if len(re.entries) == 0 {
		ev.requests = requests{gateways: ev.requests.gateways}
		return nil
	}
	ev.requests = requests{gateways: ev.requests.gateways, moves: make(map[rulePlace][]requestMove), rerouted: make(map[api.Ref]bool)}
	for _, r := range slices.Concat(re.before, re.after) {
		ev.requests.rerouted[r.Ref()] = true
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
func (ev *evaluation) moveLimits() (limits gateway.MoveLimits, matters bool) {
	limits = gateway.MoveLimits{Known: ev.requests.knows, Steps: &ev.requests.steps, Work: &ev.requests.work}
	if ev.everyKindUnlisted {
		return limits, true
	}
	at := ev.newStake((*policykind.Kind).MayOverride)
	if at == nil {
		return limits, false
	}
	limits.Policies, limits.AtStake = at.policies, mayLose
	return limits, true
}

// routersOf returns the routers of a gateway or a Service.
func (ev *evaluation) routersOf(ref api.Ref) *gatewayRouters {
	if at := ev.requests.gateways[ref]; at != nil {
		return at
	}
	at := &gatewayRouters{mesh: ref.Kind == gateway.KindService}
	if at.mesh {
		clients := ev.clientsOf(ref)
		at.before, at.after = meshRouter(ev.before, ref, clients), meshRouter(ev.after, ref, clients)
	}
	if g, ok := ev.before.Get(ref).(*gateway.Gateway); ok {
		at.before = ev.before.Router(g, gateway.Reading{}).ByPort().Memoize()
	}
	if g, ok := ev.after.Get(ref).(*gateway.Gateway); ok {
		at.after = ev.after.Router(g, gateway.Reading{}).ByPort().Memoize()
	}
	if ev.requests.gateways == nil {
		ev.requests.gateways = make(map[api.Ref]*gatewayRouters)
	}
	ev.requests.gateways[ref] = at
	return at
}

// clientsOf returns the namespaces with routes of their own to a Service of another one,
// before or after the write.
func (ev *evaluation) clientsOf(service api.Ref) []string {
	clients := make(map[string]bool)
	for _, v := range []*snapshot.View{ev.before, ev.after} {
		for r := range v.RoutesOf(service) {
			if r.Namespace != service.Namespace {
				clients[r.Namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(clients))
}

// meshRouter returns the router of a Service, nil if it does not exist.
func meshRouter(v *snapshot.View, service api.Ref, clients []string) *gateway.Router {
	s, ok := v.Get(service).(*gateway.Service)
	if !ok {
		return nil
	}
	return gateway.NewMeshRouter(s, clients, slices.Collect(v.RoutesOf(service)), gateway.Reading{}).Memoize()
}

// trackGateway finds the requests that the write moves at a gateway.
func (ev *evaluation) trackGateway(entry api.Ref, at *gatewayRouters, re reroutedObject, limits gateway.MoveLimits) error {
	if !at.mesh {
		for _, parent := range at.before.ListenersGone(at.after) {
			re.before = appendNew(re.before, ev.before.RoutesOf(parent))
		}
		for _, parent := range at.after.ListenersGone(at.before) {
			re.after = appendNew(re.after, ev.after.RoutesOf(parent))
		}
	}
	routes := slices.Concat(re.before, re.after)
	if at.mesh { // all routes of the Service compete
		routes = slices.Concat(slices.Collect(ev.before.RoutesOf(entry)), slices.Collect(ev.after.RoutesOf(entry)))
	}
	if err := ev.trackMoves(at, otherReading{before: at.before, after: at.after}, re, limits); err != nil {
		return err
	}
	for _, r := range at.readings(routes...) {
		if err := ev.trackMoves(at, r, re, limits); err != nil {
			return err
		}
		if r.reading.OneKind {
			others := reroutedObject{before: r.before.OtherKind(r.after, routes, ev.before.RoutesOf)}
			if err := ev.trackUnsure(r, others, limits, func(m gateway.Move) (requestMove, bool) { return unsureMove(m, unsureKind) }); err != nil {
				return err
			}
		}
	}
	for _, r := range at.fallBacks(routes...) {
		if err := ev.trackUnsure(r.with, re, limits, r.move); err != nil {
			return err
		}
	}
	return nil
}

// appendNew appends the routes that are not in a list.
func appendNew(list []*gateway.Route, more iter.Seq[*gateway.Route]) []*gateway.Route {
	out := slices.Clone(list)
	for r := range more {
		if !slices.Contains(list, r) {
			out = append(out, r)
		}
	}
	return out
}

// trackMoves adds the moves of requests under one reading.
func (ev *evaluation) trackMoves(at *gatewayRouters, reading otherReading, re reroutedObject, limits gateway.MoveLimits) error {
	var err error
	limits.Alive = func() bool {
		err = ev.budget.Alive()
		return err == nil
	}
	for m := range gateway.Moves(reading.before, reading.after, re.before, re.after, limits) {
		from := placeOfServed(m.From)
		ev.requests.moves[from] = addMove(ev.requests.moves[from], at.move(m, reading.why))
	}
	return err
}

// trackUnsure adds the moves of requests under a reading, as far as a function makes
// something of them.
func (ev *evaluation) trackUnsure(r otherReading, re reroutedObject, limits gateway.MoveLimits, of func(gateway.Move) (requestMove, bool)) error {
	var err error
	limits.Alive = func() bool {
		err = ev.budget.Alive()
		return err == nil
	}
	limits.Work, limits.MaxWork = &ev.requests.unsureWork, maxMovedRulesWork
	for m := range gateway.Moves(r.before, r.after, re.before, re.after, limits) {
		if move, ok := of(m); ok {
			from := placeOfServed(m.From)
			ev.requests.moves[from] = addMove(ev.requests.moves[from], move)
		}
	}
	return err
}

// knows reports whether requests between two rules are known to move in each
// implementation.
func (r *requests) knows(from, to gateway.Served) bool {
	return slices.ContainsFunc(r.moves[placeOfServed(from)], func(m requestMove) bool { return m.to.Same(to) && m.isSure() })
}

// from returns where the requests of a path's rules go after the write, if that moves
// some.
func (r *requests) from(p *gateway.Path) []requestMove {
	if len(r.moves) == 0 || !readsRequests(p) {
		return nil
	}
	if p.Service == nil {
		return r.fromListener(p, gateway.ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener})
	}
	at := r.gateways[entryOf(p)]
	if at == nil || at.before == nil {
		return nil
	}
	var out []requestMove
	for _, l := range at.before.ListenersAt(p) {
		out = append(out, r.fromListener(p, l)...)
	}
	return out
}

// fromListener is from for the requests that come in by a listener.
func (r *requests) fromListener(p *gateway.Path, l gateway.ListenerMatch) []requestMove {
	place := placeOf(&l, p.Route, p.Rule)
	if place.rule >= 0 {
		return r.moves[place]
	}
	var out []requestMove
	for place.rule = range p.Route.Rules {
		out = append(out, r.moves[place]...)
	}
	return out
}

// moved reports whether the write may move requests of a path.
func (r *requests) moved(p *gateway.Path) bool {
	return r.moves != nil && readsRequests(p) && (r.rerouted[p.Route.Ref()] || len(r.from(p)) > 0)
}

// destinations returns where the requests of a path go after the write at its gateway,
// and whether some are served by nothing there any more.
func (ev *evaluation) destinations(x *gateway.Path) (to []requestMove, ends bool) {
	last := &ev.requests.last
	if last.destinations != x {
		last.to, last.ends = ev.findDestinations(x)
		last.destinations = x
	}
	return last.to, last.ends
}

func (ev *evaluation) findDestinations(x *gateway.Path) (to []requestMove, ends bool) {
	to = slices.Clone(ev.requests.from(x))
	at := ev.routersOf(entryOf(x))
	if at.before == nil {
		return to, true
	}
	for r := range at.allReadings(x.Route) {
		for _, l := range r.before.ListenersAt(x) {
			for w := range r.before.Witnesses(x.Route, x.Rule, &l, r.after) {
				q := w.Request
				if q == nil || r.after == nil { // it is not known, or there is no gateway
					ends = true
					continue
				}
				m := gateway.NewMove(q, r.before, r.after)
				if m.To.Route == nil {
					ends = true
					continue
				}
				to = addMove(to, at.move(m, r.why))
			}
		}
	}
	for _, r := range at.fallBacks(x.Route) {
		for _, l := range r.with.before.ListenersAt(x) {
			for w := range r.with.before.Witnesses(x.Route, x.Rule, &l, r.with.after) {
				if w.Request == nil {
					continue
				}
				if m, ok := r.move(gateway.NewMove(w.Request, r.with.before, r.with.after)); ok {
					to = addMove(to, m)
				}
			}
		}
	}
	return to, ends
}

// staying returns the move of a request that stays on the path of a pair, and whether
// there may be one.
func (ev *evaluation) staying(p effective.Pair) (requestMove, bool) {
	last := &ev.requests.last
	if last.staying != &p.Before.Path {
		last.stays, last.mayStay = ev.findStaying(p)
		last.staying = &p.Before.Path
	}
	return last.stays, last.mayStay
}

func (ev *evaluation) findStaying(p effective.Pair) (requestMove, bool) {
	x, y := &p.Before.Path, &p.After.Path
	at := &gatewayRouters{}
	if readsRequests(x) && readsRequests(y) {
		at = ev.routersOf(entryOf(x))
	}
	if at.before == nil || at.after == nil {
		return requestMove{}, true
	}
	for r := range at.allReadings(x.Route, y.Route) {
		for _, l := range r.before.ListenersAt(x) {
			to := l // in a mesh, it is the same one
			if !at.mesh {
				to = listenerOf(y)
			}
			for m := range gateway.MovesBetween(r.before, r.after, x.Route, x.Rule, &l, y.Route, y.Rule, &to) {
				return requestMove{from: m.From, to: m.To, shown: m.Shown, unsearched: m.Unsearched}, true
			}
		}
	}
	return requestMove{}, false
}

// undecided reports whether it is not known which requests a path serves before the write.
func (ev *evaluation) undecided(x *gateway.Path) bool {
	at := ev.routersOf(entryOf(x))
	if at.before == nil {
		return false
	}
	for _, l := range at.before.ListenersAt(x) {
		for w := range at.before.Witnesses(x.Route, x.Rule, &l, at.after) {
			if w.Request == nil && !w.Unsearched {
				return true
			}
		}
	}
	return false
}

// pathsThrough returns the paths of a kind through a route after the write.
func (ev *evaluation) pathsThrough(route api.Ref, kind *policykind.Kind) ([]*effective.Effective, error) {
	return ev.collectPaths(&ev.requests.pathsAfter, ev.after, route, kind)
}

// collectPaths returns the paths of a kind through a route, which are kept for a while.
func (ev *evaluation) collectPaths(known *map[candidatesKey][]*effective.Effective, v *snapshot.View, route api.Ref, kind *policykind.Kind) ([]*effective.Effective, error) {
	at := candidatesKey{route, kind}
	if out, ok := (*known)[at]; ok {
		return out, nil
	}
	var out []*effective.Effective
	kinds := []api.PolicyKind{kind.Ref()}
	err := ev.guard.Engine.Walk(v, effective.Scope{Objects: []api.Ref{route}, Kinds: kinds, Empty: kinds}, false, ev.budget, func(e *effective.Effective) error {
		out = append(out, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(*known) >= maxCandidateSets || *known == nil {
		*known = make(map[candidatesKey][]*effective.Effective)
	}
	(*known)[at] = out
	return out, nil
}

// successor is a path that serves requests of another one after the write.
type successor struct {
	*effective.Effective
	by requestMove // zero where it is not known which requests
	// unsure says why an override may be kept for these requests, "" if it is not.
	unsure string
}

// requestSuccessors returns the paths at the same gateway or Service that serve requests
// of a path after the write, other than the path itself, and whether some are served by
// nothing there any more.
func (ev *evaluation) requestSuccessors(p effective.Pair, o effective.Override) (out []successor, ends bool, err error) {
	x := p.Before
	to := ev.requests.from(&x.Path)
	if p.After == nil || ev.backendLost(p, o) {
		to, ends = ev.destinations(&x.Path)
	}
	for _, m := range to {
		if p.After != nil && m.to.IsOn(&p.After.Path) && !ev.backendLost(p, o) {
			continue
		}
		successors, err := ev.successorsAt(x, o, m)
		if err != nil {
			return nil, false, err
		}
		out = append(out, successors...)
	}
	return out, ends && p.After == nil, nil
}

// successorsAt returns the paths along which requests of another one go that move.
func (ev *evaluation) successorsAt(x *effective.Effective, o effective.Override, m requestMove) (out []successor, err error) {
	paths, err := ev.pathsThrough(m.to.Route.Ref(), x.Kind)
	if err != nil {
		return nil, err
	}
	paths = pathsOf(m.to, paths, x.Path.Client)
	for _, y := range paths {
		if o.Level < gateway.LevelBackend || takesOver(&x.Path, &y.Path) {
			out = append(out, successor{Effective: y, by: m})
		}
	}
	if len(paths) == 0 && x.Path.Backend == nil { // by a route of a kind that policies of this kind do not apply to
		out = append(out, successor{Effective: &effective.Effective{Kind: x.Kind, Path: m.to.Path()}, by: m})
	}
	return out, nil
}

// pathsOf returns those paths along which requests to a rule go. In a mesh, they are those
// of the clients in a namespace if they have their own, and those of all clients for "".
func pathsOf(s gateway.Served, paths []*effective.Effective, client string) []*effective.Effective {
	client = cmp.Or(s.Listener.Client, client)
	var all, own []*effective.Effective
	for _, y := range paths {
		switch {
		case !readsRequests(&y.Path) || !s.IsOn(&y.Path):
		case client != "" && y.Path.Client == client:
			own = append(own, y)
		case client == "" || y.Path.Client == "":
			all = append(all, y)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}

// takesOver reports whether the backend of a path receives requests that another path's
// backend received, given that its rule does.
func takesOver(x, y *gateway.Path) bool {
	return x.Backend != nil && y.Backend != nil && gateway.TakesOver(x.Route, x.Rule, *x.Backend, y.Route, y.Rule, *y.Backend)
}
