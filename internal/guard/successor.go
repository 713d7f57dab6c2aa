package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// heirs returns the paths that take the traffic of a path which is no more, or
// whose rule gave its matches to another one. None where the traffic ends with
// the path: its route or its gateway was deleted, say.
//
// A path that was there before is an heir only if the same hostnames reach it:
// a route that gives up one of its hostnames moves nothing.
func (j *judge) heirs(p effective.Pair, o effective.Override, triggered bool) ([]*effective.Effective, error) {
	x := p.Before
	if p.After != nil && !j.moved(p, o) {
		return nil, nil
	}
	if x.Path.Virtual != nil || j.after.Kind(x.Kind.Ref()) == nil {
		return []*effective.Effective{{Kind: x.Kind, Path: x.Path}}, nil // it is still there, with no policy
	}
	s, err := j.surrounding(x)
	if s == nil || err != nil {
		return nil, err
	}
	var out, same, fresh []*effective.Effective
	var ways []gateway.Path // those of fresh
	for _, y := range s.after {
		known := s.before[s.earlier(y.Path)]
		if !s.follows(x.Path, y.Path, o.Level, known, triggered) || known && !gateway.ShareHosts(x.Path, y.Path) {
			continue
		}
		out = append(out, y)
		if sameDoor(x.Path, y.Path) || s.route == nil && onSameListener(x.Path, y.Path) {
			same = append(same, y)
		}
		if known {
			continue
		}
		fresh = append(fresh, y)
		if !rootless(y.Path) { // it may take nothing
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

// sameDoor reports whether two paths come in by the same listener, or by the same
// service.
func sameDoor(x, y gateway.Path) bool {
	a, b := x.ID(), y.ID()
	return a.GatewayNamespace == b.GatewayNamespace && a.Gateway == b.Gateway &&
		a.SetKind == b.SetKind && a.SetNamespace == b.SetNamespace && a.Set == b.Set && a.Listener == b.Listener &&
		a.ServiceNamespace == b.ServiceNamespace && a.Service == b.Service
}

// mayMove reports whether a pair with the same policies may still have lost an
// override: the route was edited, so that a rule's matches may be elsewhere.
func (j *judge) mayMove(p effective.Pair) bool {
	return p.Before.Path.Route != p.After.Path.Route && p.Before.Path.Rule >= 0
}

// moved reports whether requests of a path's rule may be another rule's or
// another backend's now. It matters to overrides that are attached to the rule
// itself or to its backend.
func (j *judge) moved(p effective.Pair, o effective.Override) bool {
	if o.Level < gateway.LevelRule || !j.mayMove(p) {
		return false
	}
	x, y := &p.Before.Path, &p.After.Path
	return gateway.GivesMatches(x.Route, x.Rule, y.Route, y.Rule) ||
		o.Level >= gateway.LevelBackend && y.Backend != nil && !y.Route.Rules[y.Rule].Serves(*y.Backend)
}

// surrounding is the paths of a kind through one route, on one gateway, or through
// one listener set and on the gateway that it had, before and after a change.
type surrounding struct {
	kind          *policykind.Kind
	route, edited *gateway.Route // before and after, nil for those that end above
	positions     []int          // of the route's rules, as hierarchy.MatchRules pairs them
	before        map[gateway.ID]bool
	after         []*effective.Effective
}

type surroundingKey struct {
	object api.Ref
	kind   *policykind.Kind
}

// mostSurroundings is how many are kept: paths come route by route, so that
// older ones are seldom asked for again, and all of a large gateway's are more
// than there is room for.
const mostSurroundings = 64

// surrounding returns the paths through the route of a path, or where it ends above
// through its listener set or on its gateway; nil if that is gone.
func (j *judge) surrounding(x *effective.Effective) (*surrounding, error) {
	at := surroundingKey{kind: x.Kind}
	switch {
	case x.Path.Route != nil:
		at.object = x.Path.Route.Ref()
	case x.Path.Set != nil:
		at.object = x.Path.Set.Ref() // it may be on another gateway now
	case x.Path.Gateway != nil:
		at.object = x.Path.Gateway.Ref()
	default:
		return nil, nil // a service's own path goes with the service
	}
	if s, ok := j.surroundings[at]; ok {
		return s, nil
	}
	s, err := j.survey(at, x.Path)
	if err != nil {
		return nil, err
	}
	if len(j.surroundings) >= mostSurroundings {
		clear(j.surroundings)
	}
	if j.surroundings == nil {
		j.surroundings = make(map[surroundingKey]*surrounding)
	}
	j.surroundings[at] = s
	return s, nil
}

func (j *judge) survey(at surroundingKey, x gateway.Path) (*surrounding, error) {
	now := j.after.Get(at.object)
	if now == nil {
		return nil, nil
	}
	s := &surrounding{kind: at.kind, before: make(map[gateway.ID]bool)}
	if edited, ok := now.(*gateway.Route); ok {
		s.route, s.edited = x.Route, edited
		s.positions = gateway.MatchRules(x.Route, edited)
	}
	kinds := []api.PolicyKind{at.kind.Ref()}
	scope := effective.Scope{Objects: []api.Ref{at.object}, Kinds: kinds, Empty: kinds}
	if x.Route == nil && x.Set != nil {
		scope.Objects = append(scope.Objects, x.Gateway.Ref())
	}
	err := j.Engine.Walk(j.after, scope, false, j.budget, func(e *effective.Effective) error {
		s.after = append(s.after, e)
		return nil
	})
	if err != nil {
		return s, err
	}
	if set, ok := now.(*gateway.ListenerSet); ok {
		s.byOther(set)
	} else {
		j.byOthers(s, x)
	}
	if len(s.after) == 0 { // nothing is compared with those before
		return s, nil
	}
	return s, j.Engine.Walk(j.before, scope, false, j.budget, func(e *effective.Effective) error {
		s.before[e.Path.ID()] = true
		return nil
	})
}

// earlier returns the identity that a path after the change had before it.
func (s *surrounding) earlier(y gateway.Path) gateway.ID {
	id := y.ID()
	if s.positions != nil && y.Rule >= 0 {
		id.Rule = s.positions[y.Rule]
	}
	return id
}

// follows reports whether a path may take the traffic of one that is gone.
func (s *surrounding) follows(x, y gateway.Path, level gateway.Level, known, triggered bool) bool {
	if s.route == nil {
		return onSameListener(x, y) || !known && x.Listener != nil && y.Listener != nil && x.Listener.Port == y.Listener.Port
	}
	if level >= gateway.LevelBackend &&
		(x.Backend == nil || y.Backend == nil || !gateway.TakesOver(s.route, x.Rule, *x.Backend, s.edited, y.Rule, *y.Backend)) {
		return false
	}
	return x.Rule < 0 || y.Rule < 0 || s.takes(x, y.Rule, level, triggered)
}

// takes reports whether a rule after the change takes requests of the rule of a
// path before it: it is the same one, or has a match of it, or that rule is
// gone, and any may: a policy that was attached to it has no target then. What is
// bound by triggers goes where the matches go: those that no rule has any more to
// any rule whose own they meet, or of a rule that is gone to any at all, since one
// may be edited and renamed at once. For the same reason a new rule may take the
// requests to the backend of a rule that is gone.
func (s *surrounding) takes(x gateway.Path, rule int, level gateway.Level, triggered bool) bool {
	if s.positions[rule] == x.Rule || gateway.TakesFrom(s.route, x.Rule, s.edited, rule) {
		return true
	}
	gone := !slices.Contains(s.positions, x.Rule)
	switch {
	case triggered && gone:
		return gateway.LosesMatches(s.route, x.Rule, s.edited)
	case triggered:
		return gateway.MayReceive(s.route, x.Rule, s.edited, rule)
	default:
		return gone && (level == gateway.LevelRule || level >= gateway.LevelBackend && s.positions[rule] < 0)
	}
}

func onSameListener(x, y gateway.Path) bool {
	a, b := x.ID(), y.ID()
	return a.SetKind == b.SetKind && a.SetNamespace == b.SetNamespace && a.Set == b.Set && a.Listener == b.Listener
}
