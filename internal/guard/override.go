package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard/limits"
	"overrule.dev/overrule/merge"
)

// checkOverrides books the overrides that hold on a path and would not any more.
//
// An override holds as long as its policy gives it on the path: the same value
// under the same condition, or under none. What beats it then is a higher
// override, which is how the hierarchy works. That its condition is not met is
// no loss either: the lower policies comply.
//
// One that binds to rules of routes holds where it is bound.
//
// again tells that the pair is like the one before.
func (ev *evaluation) checkOverrides(p effective.Pair, b limits.Pair, again bool) error {
	if p.Before == nil {
		return nil
	}
	still := p.After != nil && !ev.routeEdited(p) && !b.HostsChanged(p) && sameClass(&p.Before.Path, &p.After.Path)
	loosened := ev.lessProtected[p.Before.Kind.Ref()]
	if still && loosened == "" && p.Before.Result == p.After.Result {
		return nil
	}
	ev.pairs++
	ev.terminating.observe(ev, p.Before) // paths with the same policies may have them from another class
	if still && again {
		for _, t := range ev.prev.lost {
			t.addPath(ev.pairs)
		}
		return nil
	}
	ev.held = p.Before.AppendHeld(ev.held[:0])
	var kept keptOverrides
	for _, o := range ev.held {
		bound := b.Before.Holds(o)
		if p.After != nil {
			if !p.After.Sets(o) || ev.movesToTerminating(o, p.Before, p.After) {
				if t := ev.addLost(o, p.Before, p.After); still {
					ev.prev.addLost(t, o.Level)
				}
				continue
			}
			if unbound := b.After.UnboundReason(o); bound && unbound != "" {
				ev.addUnbound(o, p.Before, p.After, unbound)
				continue
			}
		}
		if loosened != "" {
			if t := ev.addLessProtected(o, p.Before, loosened); still {
				ev.prev.lost = append(ev.prev.lost, t)
			}
			continue
		}
		if err := ev.checkSuccessors(p, b, o, &kept); err != nil {
			return err
		}
	}
	for i, successor := range kept.heirs {
		ev.checkWeakenedOnSuccessor(p.Before, successor, kept.policies[i])
	}
	return nil
}

// keptOverrides is the paths that take the traffic of one, each with the policies whose
// overrides they keep.
type keptOverrides struct {
	heirs    []*effective.Effective
	policies [][]*merge.Policy
}

func (k *keptOverrides) add(successor *effective.Effective, policy *merge.Policy) {
	i := slices.Index(k.heirs, successor)
	if i < 0 {
		i, k.heirs, k.policies = len(k.heirs), append(k.heirs, successor), append(k.policies, nil)
	}
	if !slices.Contains(k.policies[i], policy) {
		k.policies[i] = append(k.policies[i], policy)
	}
}

// checkSuccessors books an override that does not hold on the paths which take the
// traffic of one that is gone, or that gave up a match, and where it is kept.
func (ev *evaluation) checkSuccessors(p effective.Pair, b limits.Pair, o effective.Override, kept *keptOverrides) error {
	at, bound := o, b.Before.Holds(o)
	triggered := bound && b.Before.Triggered()
	if triggered {
		at.Level = gateway.LevelRule // by its triggers it hangs on the rule
	}
	successors, err := ev.successors(p, at, triggered && o.Level < gateway.LevelRule)
	if err != nil {
		return err
	}
	for _, successor := range successors {
		if viaUnreadParent(successor.Path) && movesAlong(successor.Path, o.Level) {
			continue
		}
		if !successor.Sets(o) || ev.movesToTerminating(o, p.Before, successor) {
			ev.addLost(o, p.Before, successor)
		} else if unbound := ev.limits.BindAfter(successor).UnboundReason(o); bound && unbound != "" {
			if p.After == nil && unbound == limits.Unmatched {
				unbound = limits.RuleRemoved
			}
			ev.addUnbound(o, p.Before, successor, unbound)
		} else {
			kept.add(successor, o.Policy)
		}
	}
	return nil
}
