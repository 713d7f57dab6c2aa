package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
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
	own         map[ownLoss]*lostOverride // that their own policy gives up, whether or not they hold
	confirmed   map[*merge.Rule]bool      // overrides that requests are known to lose
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
}

// checkOverrides adds the overrides that apply on a path and would no longer apply
// after the write.
//
// An override applies as long as its policy gives it on the path: the same value
// under the same condition, or under none. That a higher override beats it then is no
// loss: the hierarchy works so. That its condition is not met is no loss either: the
// lower policies comply. An override that binds to rules of routes applies where it is
// bound.
//
// again is set if the pair has the same effective policies as the previous one.
func (ev *overrides) checkOverrides(p effective.Pair, again bool) error {
	if p.Before == nil {
		return nil
	}
	c := overrideCheck{
		ev: ev, paths: p,
		stays: p.After != nil && !ev.routeEdited(p) && !ev.moved(&p.Before.Path) && sameClass(&p.Before.Path, &p.After.Path) &&
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
		if move, stays = c.ev.staying(c.paths); stays && c.ev.moves == nil {
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
	var err error
	if s.unsure, err = c.keptInstead(o, s.by); err != nil {
		return err
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
	if !is.Sets(o) || c.ev.terminating.movesTo(o, c.paths.Before, is) {
		return true, ""
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
