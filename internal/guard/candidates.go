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
	if level >= gateway.LevelBackend && !takesOver(&x, &y) {
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

// addUnreadParents adds to the candidates of a route what may take its traffic by parents
// of unsupported kinds: paths without a root, one for each rule, on which only what is
// attached to the route itself is known to apply. They existed before if all of these
// parents did.
func (ev *successors) addUnreadParents(s *candidates, x gateway.Path) {
	parents := ev.unreadParents(ev.after, s.edited, s.kind)
	if len(parents) == 0 {
		return
	}
	was := ev.unreadParents(ev.before, s.route, s.kind)
	known := !slices.ContainsFunc(parents, func(p api.Ref) bool { return !slices.Contains(was, p) })
	rules := []int{-1}
	if x.Rule >= 0 {
		rules = rules[:0]
		for i := range s.edited.Rules {
			if x.Backend == nil || len(s.edited.Rules[i].Backends) > 0 { // else nothing serves it
				rules = append(rules, i)
			}
		}
	}
	for _, i := range rules {
		y := gateway.Path{Route: s.edited, Rule: i}
		s.after = append(s.after, &effective.Effective{Kind: s.kind, Path: y})
		if known {
			s.before[ev.idBefore(s, y)] = true
		}
	}
}

// addUnreadSetParent adds the listeners of a set that moved to a parent of an unsupported
// kind.
func (s *candidates) addUnreadSetParent(set *gateway.ListenerSet) {
	if set.Unread == (api.Ref{}) {
		return
	}
	for i := range set.Listeners {
		y := gateway.Path{Set: set, Listener: &set.Listeners[i], Rule: -1}
		s.after = append(s.after, &effective.Effective{Kind: s.kind, Path: y})
	}
}
