package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// overrides are the overrides that the write affects.
type overrides struct {
	*successors

	blast       *blastRadius
	weakenings  weakenings
	pairs       int32                // that were evaluated
	held        []effective.Override // of the current pair
	lost        map[lostOverrideKey]*lostOverride
	own         map[policyRule]*lostOverride // that their own policy gives up, whether or not they hold
	confirmed   map[*merge.Rule]bool         // overrides that requests are known to lose
	terminating terminating
	prev        prevPair
}

func newOverrides(w *write, blast *blastRadius) *overrides {
	return &overrides{
		successors: &successors{requests: &requests{write: w}},
		blast:      blast, weakenings: weakenings{write: w}, terminating: terminating{write: w},
	}
}

// overrideCheck compares the overrides of a path before and after the write.
type overrideCheck struct {
	ev    *overrides
	paths effective.Pair
	// stays is set if no requests of the path can have moved, so that pairs of the same
	// effective policies have the same losses.
	stays bool
	kept  []keptOverrides
	// staying is what findStaying returns, once it is looked up.
	staying *stayingRequest
}

// stayingRequest is a request that stays on a path, and whether there may be one.
type stayingRequest struct {
	flow

	may bool
}

// findStaying returns a request that stays on the path.
func (c *overrideCheck) findStaying() (flow, bool) {
	if c.staying == nil {
		c.staying = &stayingRequest{}
		c.staying.flow, c.staying.may = c.ev.staying(c.paths)
	}
	return c.staying.flow, c.staying.may
}

// checkOverrides adds the overrides that hold on a path and would no longer hold after the
// write.
//
// An override holds as long as its policy has it on the path: the same value under the same
// condition, or under none (Effective.Keeps). That a higher override beats it then is no
// loss: the hierarchy works so. That its condition is not met is no loss either: the
// lower policies comply. An override that binds to rules of routes holds where it is
// bound.
//
// again is set if the pair has the same effective policies as the previous one.
func (ev *overrides) checkOverrides(p effective.Pair, again bool) error {
	if p.Before == nil {
		return nil
	}
	c := overrideCheck{
		ev: ev, paths: p,
		stays: p.After != nil && !ev.routeEdited(p) && !ev.mayMove(&p.Before.Path) && sameClass(&p.Before.Path, &p.After.Path) &&
			(!ev.editsListeners() || !endsAtListener(&p.Before.Path)) &&
			(!p.Limited() || slices.Equal(p.Before.Path.Hosts(), p.After.Path.Hosts())), // what is bound depends on them
	}
	if c.stays && p.Before.Result == p.After.Result {
		return nil
	}
	ev.pairs++
	ev.terminating.observe(p.Before) // paths with the same policies may have them from another class
	if c.stays && again {
		for _, l := range ev.prev.lost {
			l.addPath(ev.pairs)
		}
		return nil
	}
	ev.held = p.Before.AppendOverrides(ev.held[:0])
	for _, o := range ev.held {
		if err := c.check(o); err != nil {
			return err
		}
	}
	for _, k := range c.kept {
		ev.weakenings.checkOnSuccessor(p.Before, k.on, k.policies)
	}
	return nil
}

// check checks one override that applies before the write.
func (c *overrideCheck) check(o effective.Override) error {
	lost, substituted := c.checkOnSamePath(o)
	if lost && !substituted {
		return nil
	}
	return c.checkSuccessors(o) // if it is lost there, other requests may go where nothing stands in for it
}

// checkOnSamePath adds an override that is not given, or not bound, on the path itself
// after the write, if some request stays on it. It reports whether it did, and whether
// other policies may stand in for it there.
func (c *overrideCheck) checkOnSamePath(o effective.Override) (added, substituted bool) {
	if c.paths.After == nil {
		return false, false
	}
	before, after := c.paths.Before, c.paths.After
	lost, unbound := c.lostOn(o, after)
	if !lost {
		return false, false
	}
	var move flow
	stays := c.ev.confirmed[o.Rule]
	if !stays {
		// Whether other paths of a write that moves no requests serve some is not looked up
		// once one does: there may be very many.
		if move, stays = c.findStaying(); stays && c.ev.moves == nil {
			put(&c.ev.confirmed, o.Rule, true)
		}
	}
	if !stays {
		c.ev.prev.kind = nil // requests of other paths with the same policies may stay
		return false, false
	}
	l := c.ev.addLostOverride(o, before, successor{Effective: after, by: move}, unbound)
	if c.stays && unbound == "" {
		c.ev.prev.recordLost(l, o.Level)
	}
	return true, len(l.substitutes) > 0
}

// checkSuccessors checks an override on the paths that take the traffic of a path which
// is removed, or whose rule gives up a match.
func (c *overrideCheck) checkSuccessors(o effective.Override) error {
	bound, at := c.paths.Before.Bound(), o
	if bound.Holds(o) && bound.Triggered {
		at.Level = max(at.Level, gateway.LevelRule) // its triggers bind it to the rule
	}
	successors, err := c.ev.successorsOf(c.paths, at)
	if err != nil {
		return err
	}
	for _, successor := range successors {
		if !viaUnreadParent(successor.Path) || !movesAlong(successor.Path, o.Level) {
			if err := c.checkSuccessor(o, successor); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSuccessor adds an override that is not given, or not bound, on a successor, and
// keeps note of one that is.
func (c *overrideCheck) checkSuccessor(o effective.Override, s successor) error {
	lost, unbound := c.lostOn(o, s.Effective)
	if !lost {
		c.keep(s.Effective, o.Policy)
		return nil
	}
	if s.unsure == "" {
		var err error
		if s.by, s.unsure, err = c.keptInstead(o, s.by); err != nil {
			return err
		}
	}
	c.ev.addLostOverride(o, c.paths.Before, s, unbound)
	return nil
}

// ruleRemoved is why an override is not bound to another rule once the write removes its
// own.
const ruleRemoved = "its rule would be removed, and its triggers do not match"

// lostOn reports whether an override that applies before the write does not on a path after
// it: it is not given there, or it was bound and is not; then it returns why.
func (c *overrideCheck) lostOn(o effective.Override, is *effective.Effective) (lost bool, unbound string) {
	if !is.Keeps(o) || c.ev.terminating.movesTo(o, c.paths.Before, is) {
		return true, ""
	}
	if by := is.GivesWayTo(o); by != nil {
		return true, is.Ref(by).String() + " takes its place"
	}
	if !c.paths.Before.Bound().Holds(o) {
		return false, ""
	}
	if unbound = is.Bound().WhyUnbound(o); unbound == effective.Unmatched && c.paths.After == nil {
		unbound = ruleRemoved
	}
	return unbound != "", unbound
}

// keptOverrides are the policies whose overrides a successor of a path keeps.
type keptOverrides struct {
	on       *effective.Effective
	policies []*merge.Policy
}

func (c *overrideCheck) keep(on *effective.Effective, policy *merge.Policy) {
	i := slices.IndexFunc(c.kept, func(k keptOverrides) bool { return k.on == on })
	if i < 0 {
		i, c.kept = len(c.kept), append(c.kept, keptOverrides{on: on})
	}
	if k := &c.kept[i]; !slices.Contains(k.policies, policy) {
		k.policies = append(k.policies, policy)
	}
}

// keptInstead says why an override of a path may be kept for the requests that a successor
// takes over, "" if it is lost for some of them, which it returns, in every implementation.
func (c *overrideCheck) keptInstead(o effective.Override, by flow) (lost flow, why string, err error) {
	if by.unsure != "" {
		return by, by.unsure, nil
	}
	for _, s := range by.instead {
		kept, err := c.keptAt(o, s.Served)
		if err != nil {
			return by, "", err
		}
		if !kept {
			continue
		}
		if by.Request != nil && !by.To.Route.Awaited {
			at := c.ev.routersOf(entryOf(&c.paths.Before.Path))
			for m := range by.Beside(s.by.before, s.by.after, &c.ev.besideWork) {
				if lost, why, err := c.keptInstead(o, at.flow(m, s.why)); err != nil || why == "" {
					return lost, why, err
				}
			}
		}
		return by, s.why, nil
	}
	return by, "", nil
}

// keptAt reports whether an override of the path is kept for requests that a rule serves
// after the write.
func (c *overrideCheck) keptAt(o effective.Override, to gateway.Served) (bool, error) {
	x := c.paths.Before
	paths, err := c.ev.pathsTo(to, x.Kind, x.Path.Client, true)
	if err != nil {
		return false, err
	}
	paths = slices.DeleteFunc(paths, func(y *effective.Effective) bool {
		return o.Level >= gateway.LevelBackend && !sameBackend(&y.Path, &x.Path) && !takesOver(&x.Path, &y.Path)
	})
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(y *effective.Effective) bool {
		lost, unbound := c.lostOn(o, y)
		return lost && (unbound != "" || len(c.ev.substitutes(o, x, y)) == 0)
	}), nil
}

// prevPair is the result of the previous pair. Pairs of the same effective policies share
// it: on a gateway without policies below, all paths do.
type prevPair struct {
	kind          *policykind.Kind
	before, after *merge.Result
	changed       bool
	unreached     bool // the last path of these effective policies
	lostRules     []lostRule
	lost          []*lostOverride // overrides, each once
	at            *gateway.Path   // after the write, nil where overrides on routes are lost
}

// recordLost adds an override that is lost at a level.
func (prev *prevPair) recordLost(l *lostOverride, at gateway.Level) {
	prev.lost = append(prev.lost, l)
	if at >= gateway.LevelRoute {
		prev.at = nil
	}
}

// newPrevPair returns the result of a pair; room is reused for its losses.
func newPrevPair(p effective.Pair, room []*lostOverride) prevPair {
	prev := prevPair{changed: p.Changed(), lost: room}
	if p.Before == nil || p.After == nil || p.Limited() {
		return prev
	}
	prev.kind, prev.before, prev.after, prev.at = p.After.Kind, p.Before.Result, p.After.Result, &p.After.Path
	return prev
}

// sameEffective reports whether another pair has the same effective policies. Losses of
// overrides also depend on the objects that the policies depend on.
func (prev *prevPair) sameEffective(p effective.Pair) bool {
	return prev.kind != nil && p.Before != nil && p.After != nil && !p.Limited() &&
		p.After.Kind == prev.kind && p.Before.Result == prev.before && p.After.Result == prev.after &&
		(len(prev.lost) == 0 || prev.at != nil && sameAncestors(prev.at, &p.After.Path))
}

// sameAncestors reports whether the policies above routes depend on the same objects on
// two paths of the same effective policies.
func sameAncestors(a, b *gateway.Path) bool {
	return a.Gateway == b.Gateway && a.Set == b.Set && a.Service == b.Service &&
		(a.Route == b.Route || a.Route.Namespace == b.Route.Namespace) // both have one or neither
}
