package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard/limits"
	"overrule.dev/overrule/merge"
)

// overrides are the overrides that the write affects.
type overrides struct {
	pairs       int32                // that were evaluated
	held        []effective.Override // of the current pair
	lost        map[lostOverrideKey]*lostOverride
	reasons     map[*merge.Rule]lossReason // of losses
	own         []*lostOverride            // that their own policy gives up, whether or not they hold
	confirmed   map[*merge.Rule]bool       // overrides that requests are known to lose
	terminating terminatingPolicies
	candidates  map[candidatesKey]*candidates
	listeners   map[*gateway.Gateway]gateway.ListenersBefore // by gateway after the write
	weakenings  findings                                     // of overrides that are weakened, before permissions
	prev        prevPair
}

// overrideCheck compares the overrides of a path before and after the write.
type overrideCheck struct {
	ev     *evaluation
	paths  effective.Pair
	limits limits.Pair
	// stays is set if no requests of the path can have moved, so that pairs of the same
	// effective policies have the same losses.
	stays bool
	kept  keptOverrides
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
func (ev *evaluation) checkOverrides(p effective.Pair, b limits.Pair, again bool) error {
	if p.Before == nil {
		return nil
	}
	c := overrideCheck{
		ev: ev, paths: p, limits: b,
		stays: p.After != nil && !ev.routeEdited(p) && !ev.requests.moved(&p.Before.Path) && !b.HostsChanged(p) && sameClass(&p.Before.Path, &p.After.Path) &&
			(!ev.editsListeners() || !endsAtListener(&p.Before.Path)),
	}
	if c.stays && p.Before.Result == p.After.Result {
		return nil
	}
	ev.overrides.pairs++
	ev.overrides.terminating.observe(ev, p.Before) // paths with the same policies may have them from another class
	if c.stays && again {
		for _, l := range ev.overrides.prev.lost {
			l.addPath(ev.overrides.pairs)
		}
		return nil
	}
	ev.overrides.held = p.Before.AppendOverrides(ev.overrides.held[:0])
	for _, o := range ev.overrides.held {
		if err := c.check(o); err != nil {
			return err
		}
	}
	for i, successor := range c.kept.successors {
		ev.checkWeakenedOnSuccessor(p.Before, successor, c.kept.policies[i])
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
	lost, reason := !after.Sets(o) || c.ev.movesToTerminating(o, before, after), ""
	if !lost && c.limits.Before.Holds(o) {
		reason = c.limits.After.UnboundReason(o)
	}
	if !lost && reason == "" {
		return false, false
	}
	var move flow
	stays := c.ev.overrides.confirmed[o.Rule]
	if !stays {
		move, stays = c.ev.staying(c.paths)
		c.ev.confirm(o, stays)
	}
	if !stays {
		c.ev.overrides.prev.kind = nil // requests of other paths with the same policies may stay
	}
	switch {
	case !stays:
		return false, false
	case !lost:
		c.ev.addUnboundOverride(o, before, successor{Effective: after, by: move}, reason)
		return true, false
	}
	l := c.ev.addLostOverride(o, before, successor{Effective: after, by: move})
	if c.stays {
		c.ev.overrides.prev.recordLost(l, o.Level)
	}
	return true, len(l.substitutes) > 0
}

// confirm notes that a write which moves no requests takes an override from some. Whether
// its other paths serve requests is not looked up then: there may be very many.
func (ev *evaluation) confirm(o effective.Override, lost bool) {
	if !lost || ev.requests.moves != nil {
		return
	}
	if ev.overrides.confirmed == nil {
		ev.overrides.confirmed = make(map[*merge.Rule]bool)
	}
	ev.overrides.confirmed[o.Rule] = true
}

// checkSuccessors checks an override on the paths that take the traffic of a path which
// is removed, or whose rule gives up a match.
func (c *overrideCheck) checkSuccessors(o effective.Override) error {
	at, triggered := o, c.limits.Before.Holds(o) && c.limits.Before.Triggered()
	if triggered {
		at.Level = gateway.LevelRule // its triggers bind it to the rule
	}
	successors, err := c.ev.successors(c.paths, at, triggered && o.Level < gateway.LevelRule)
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
	lost, reason := c.lostOn(o, s.Effective)
	if !lost && reason == "" {
		c.kept.add(s.Effective, o.Policy)
		return nil
	}
	var err error
	if s.unsure, err = c.keptInstead(o, s.by); err != nil {
		return err
	}
	if lost {
		c.ev.addLostOverride(o, c.paths.Before, s)
	} else {
		c.ev.addUnboundOverride(o, c.paths.Before, s, reason)
	}
	return nil
}

// lostOn reports whether an override is not given on a path after the write, and if it is, why
// it is not bound there although it was, "" if it is or was not.
func (c *overrideCheck) lostOn(o effective.Override, y *effective.Effective) (lost bool, unbound string) {
	if !y.Sets(o) || c.ev.movesToTerminating(o, c.paths.Before, y) {
		return true, ""
	}
	if c.limits.Before.Holds(o) {
		unbound = c.ev.limits.BindAfter(y).UnboundReason(o)
	}
	if c.paths.After == nil && unbound == limits.Unmatched {
		unbound = limits.RuleRemoved
	}
	return false, unbound
}

// keptOverrides are the successors of a path, each with the policies whose overrides
// they keep.
type keptOverrides struct {
	successors []*effective.Effective
	policies   [][]*merge.Policy
}

func (k *keptOverrides) add(successor *effective.Effective, policy *merge.Policy) {
	i := slices.Index(k.successors, successor)
	if i < 0 {
		i, k.successors, k.policies = len(k.successors), append(k.successors, successor), append(k.policies, nil)
	}
	if !slices.Contains(k.policies[i], policy) {
		k.policies[i] = append(k.policies[i], policy)
	}
}
