package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// successors knows the paths that serve the requests of others after the write.
type successors struct {
	*requests

	// paths through routes before and after the write
	pathsBefore, pathsAfter map[candidatesKey][]*effective.Effective
	candidates              map[candidatesKey]*candidates
	listeners               map[*gateway.Gateway]gateway.ListenersBefore // by gateway after the write
}

// successorsOf returns the paths that take the traffic of a path which is removed, or of
// which the write moves requests. There are none where the traffic ends with the path: its
// route or its gateway was deleted, say.
//
// At the port of the path, requests decide. Requests that nothing serves there any more
// may come in by another port or gateway that the route is on after the write, or by a
// parent of an unsupported kind: clients follow their service.
func (ev *successors) successorsOf(p effective.Pair, o effective.Override) ([]successor, error) {
	x := &p.Before.Path
	if x.Virtual != nil || ev.after.Kind(p.Before.Kind.Ref()) == nil {
		if p.After != nil {
			return nil, nil
		}
		return []successor{{Effective: &effective.Effective{Kind: p.Before.Kind, Path: *x}}}, nil // it is still there, with no policy
	}
	if !readsRequests(x) {
		out, err := ev.successorsByName(p, o)
		if err == nil && endsAtListener(x) {
			out, err = ev.addListenerSuccessors(p, out)
		}
		return out, err
	}
	if p.After == nil && ev.routersOf(entryOf(x)).after == nil {
		// most of the time, nothing serves the requests of a gateway that is removed
		if elsewhere, err := ev.successorsByName(p, o); err != nil || len(elsewhere) == 0 {
			return nil, err
		}
	}
	out, ends, err := ev.requestSuccessors(p, o)
	if err != nil || !ends {
		return out, err
	}
	elsewhere, err := ev.successorsByName(p, o)
	undecided := ev.destinations(x).undecided
	for _, y := range elsewhere {
		if undecided || !samePort(x, &y.Path) {
			out = append(out, y)
		}
	}
	return out, err
}

// endsAtListener reports whether a path ends at a listener.
func endsAtListener(x *gateway.Path) bool {
	return x.Gateway != nil && x.Listener != nil && x.Route == nil
}

// addListenerSuccessors adds the paths at the other listeners of the gateway that take
// connections of the listener of a path after the write: those with a more specific
// hostname, say.
func (ev *successors) addListenerSuccessors(p effective.Pair, out []successor) ([]successor, error) {
	x := &p.Before.Path
	at := ev.routersOf(x.Gateway.Ref())
	if at.before == nil || at.after == nil {
		return out, nil
	}
	from := listenerOf(x)
	for to := range at.before.ListenersAfter(&from, at.after) {
		if p.After != nil && sameListener(p.After.Path, gateway.Path{Gateway: to.Gateway, Set: to.Set, Listener: to.Listener}) {
			continue
		}
		paths, err := ev.pathsThrough(x.Gateway.Ref(), p.Before.Kind, true)
		if err != nil {
			return nil, err
		}
		for _, y := range paths {
			l := listenerOf(&y.Path)
			if !endsAtListener(&y.Path) || !l.Same(to) || slices.ContainsFunc(out, func(s successor) bool { return sameListener(s.Path, y.Path) }) {
				continue
			}
			out = append(out, successor{Effective: y})
		}
	}
	return out, nil
}

// successorsByName returns the paths that take the traffic of a path which is removed, by
// the names of listeners and rules.
//
// A path that existed before is a successor only if the same hostnames reach it: a route
// that gives up one of its hostnames moves nothing.
func (ev *successors) successorsByName(p effective.Pair, o effective.Override) ([]successor, error) {
	x := p.Before
	if p.After != nil && !ev.backendLost(p, o) {
		return nil, nil
	}
	s, err := ev.candidatesFor(x)
	if s == nil || err != nil {
		return nil, err
	}
	var out, same, fresh []successor
	var ways []gateway.Path // those of fresh
	for _, y := range s.after {
		known := s.before[ev.idBefore(s, y.Path)]
		if !s.mayReceive(x.Path, y.Path, o.Level, known) || known && !gateway.ShareHosts(x.Path, y.Path) {
			continue
		}
		out = append(out, successor{Effective: y})
		if sameEntry(x.Path.ID(), ev.idBefore(s, y.Path)) || s.route == nil && sameListenerName(x.Path, y.Path) {
			same = append(same, successor{Effective: y})
		}
		if known {
			continue
		}
		fresh = append(fresh, successor{Effective: y})
		if !viaUnreadParent(y.Path) { // it may take nothing
			ways = append(ways, y.Path)
		}
	}
	switch {
	case len(same) > 0:
		return same, nil // it goes on where it came in: to another backend, say
	case x.Path.CoveredBy(ways):
		return fresh, nil // to new paths: those that were there take nothing more
	default:
		return out, nil
	}
}

// samePort reports whether two paths come in by the same port of one gateway, or of one
// Service.
func samePort(x, y *gateway.Path) bool {
	if x.Service != nil {
		return y.Service != nil && y.Service.Ref() == x.Service.Ref() && (x.Port == 0 || y.Port == 0 || x.Port == y.Port)
	}
	return y.Gateway != nil && y.Listener != nil && y.Gateway.Ref() == x.Gateway.Ref() && y.Listener.SamePort(x.Listener)
}

// sameListener reports whether two paths have the same listener, or the same service.
func sameListener(x, y gateway.Path) bool { return sameEntry(x.ID(), y.ID()) }

func sameEntry(a, b gateway.ID) bool {
	return a.GatewayNamespace == b.GatewayNamespace && a.Gateway == b.Gateway &&
		a.SetKind == b.SetKind && a.SetNamespace == b.SetNamespace && a.Set == b.Set && a.Listener == b.Listener &&
		a.ServiceNamespace == b.ServiceNamespace && a.Service == b.Service
}

// routeEdited reports whether a pair with the same policies may still have lost an
// override: the route was edited, so that a rule's matches or backends may have moved.
func (ev *successors) routeEdited(p effective.Pair) bool {
	return p.Before.Path.Route != p.After.Path.Route && p.Before.Path.Rule >= 0
}

// backendLost reports whether the rule of a path no longer sends requests to its backend.
// It matters to overrides that are attached to that.
func (ev *successors) backendLost(p effective.Pair, o effective.Override) bool {
	if p.After == nil || o.Level < gateway.LevelBackend || !ev.routeEdited(p) {
		return false
	}
	y := &p.After.Path
	return y.Backend != nil && !y.Route.Rules[y.Rule].Serves(*y.Backend)
}

// candidates is the paths of a kind through one route, on one gateway, or through one
// listener set and on the gateway that it had, before and after a change.
type candidates struct {
	kind          *policykind.Kind
	route, edited *gateway.Route // before and after, nil for those that end above
	positions     []int          // of the route's rules, as gateway.MatchRules pairs them
	before        map[gateway.ID]bool
	after         []*effective.Effective
}

type candidatesKey struct {
	object api.Ref
	kind   *policykind.Kind
}

// candidatesFor returns the paths through the route of a path, or where it ends above
// through its listener set or on its gateway; nil if that is removed.
func (ev *successors) candidatesFor(x *effective.Effective) (*candidates, error) {
	at := candidatesKey{kind: x.Kind}
	switch {
	case x.Path.Route != nil:
		at.object = x.Path.Route.Ref()
	case x.Path.Set != nil:
		at.object = x.Path.Set.Ref() // it may be on another gateway now
	case x.Path.Gateway != nil && x.Path.Service == nil:
		at.object = x.Path.Gateway.Ref()
	default:
		return nil, nil // a service's own path goes with the service
	}
	if s, ok := ev.candidates[at]; ok {
		return s, nil
	}
	s, err := ev.collectCandidates(at, x.Path)
	if err != nil {
		return nil, err
	}
	if len(ev.candidates) >= maxCandidateSets {
		clear(ev.candidates)
	}
	put(&ev.candidates, at, s)
	return s, nil
}

func (ev *successors) collectCandidates(at candidatesKey, x gateway.Path) (*candidates, error) {
	now := ev.after.Get(at.object)
	if now == nil {
		return nil, nil
	}
	s := &candidates{kind: at.kind, before: make(map[gateway.ID]bool)}
	if edited, ok := now.(*gateway.Route); ok {
		s.route, s.edited = x.Route, edited
		s.positions = gateway.MatchRules(x.Route, edited)
	}
	objects := []api.Ref{at.object}
	if x.Route == nil && x.Set != nil {
		objects = append(objects, x.Gateway.Ref())
	}
	var err error
	if s.after, err = ev.walk(ev.after, at.kind, objects...); err != nil {
		return s, err
	}
	if set, ok := now.(*gateway.ListenerSet); ok {
		s.addUnreadSetParent(set)
	} else {
		ev.addUnreadParents(s, x)
	}
	if len(s.after) == 0 { // nothing is compared with those before
		return s, nil
	}
	before, err := ev.walk(ev.before, at.kind, objects...)
	for _, e := range before {
		s.before[e.Path.ID()] = true
	}
	return s, err
}

// idBefore returns the identity that a path after the change had before it.
func (ev *successors) idBefore(s *candidates, y gateway.Path) gateway.ID {
	id := ev.listenersBefore(y.Gateway).ID(y)
	if s.positions != nil && y.Rule >= 0 {
		id.Rule = s.positions[y.Rule]
	}
	return id
}

// listenersBefore pairs the listeners of a gateway, nil for none, with those before the
// write.
func (ev *successors) listenersBefore(after *gateway.Gateway) gateway.ListenersBefore {
	if after == nil {
		return nil
	}
	if known, ok := ev.listeners[after]; ok {
		return known
	}
	var out gateway.ListenersBefore
	if before, ok := ev.before.Get(after.Ref()).(*gateway.Gateway); ok {
		out = gateway.PairListeners(ev.before.Listeners(before), ev.after.Listeners(after))
	}
	put(&ev.listeners, after, out)
	return out
}

// mayReceive reports whether a path may receive the traffic of one that is removed.
func (s *candidates) mayReceive(x, y gateway.Path, level gateway.Level, known bool) bool {
	if s.route == nil {
		return sameListenerName(x, y) || !known && x.Listener != nil && y.Listener != nil && x.Listener.SamePort(y.Listener)
	}
	if level >= gateway.LevelBackend &&
		(x.Backend == nil || y.Backend == nil || !gateway.TakesOver(s.route, x.Rule, *x.Backend, s.edited, y.Rule, *y.Backend)) {
		return false
	}
	return x.Rule < 0 || y.Rule < 0 || s.ruleMayReceive(x, y.Rule, level)
}

// ruleMayReceive reports whether a rule after the change may receive requests of the rule
// of a path before it: it is the same one, or has a match of it, or that rule is removed,
// and any may: a policy that was attached to it has no target then. A new rule may receive
// the requests to the backend of a rule that is removed, since one write may edit and rename
// it.
func (s *candidates) ruleMayReceive(x gateway.Path, rule int, level gateway.Level) bool {
	return s.positions[rule] == x.Rule || gateway.TakesFrom(s.route, x.Rule, s.edited, rule) ||
		!slices.Contains(s.positions, x.Rule) &&
			(level == gateway.LevelRule || level == gateway.LevelFilter || level >= gateway.LevelBackend && s.positions[rule] < 0)
}

// sameListenerName reports whether two paths have the same listener, perhaps on different
// gateways.
func sameListenerName(x, y gateway.Path) bool {
	a, b := x.ID(), y.ID()
	return a.SetKind == b.SetKind && a.SetNamespace == b.SetNamespace && a.Set == b.Set && a.Listener == b.Listener
}
