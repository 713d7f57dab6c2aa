package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// overrides books the overrides that hold on a path and would not any more.
//
// An override holds as long as its policy gives it on the path: the same value
// under the same condition, or under none. What beats it then is a higher
// override, which is how the hierarchy works. That its condition is not met is
// no loss either: the lower policies comply.
//
// One that binds to rules of routes holds where it is bound.
//
// again tells that the pair is like the one before.
func (j *judge) overrides(p effective.Pair, b boundPair, again bool) error {
	if p.Before == nil {
		return nil
	}
	still := p.After != nil && !j.mayMove(p) && !b.elsewhere(p) && sameClass(&p.Before.Path, &p.After.Path)
	loosened := j.loosened[p.Before.Kind.Ref()]
	if still && loosened == "" && p.Before.Result == p.After.Result {
		return nil
	}
	j.pairs++
	j.departing.look(j, p.Before) // paths with the same policies may have them from another class
	if still && again {
		for _, t := range j.like.lost {
			t.book(j.pairs)
		}
		return nil
	}
	j.held = p.Before.AppendHeld(j.held[:0])
	var kept keptOn
	for _, o := range j.held {
		bound := b.was.holds(o)
		if p.After != nil {
			if !p.After.Sets(o) || j.slips(o, p.Before, p.After) {
				if t := j.lose(o, p.Before, p.After); still {
					j.like.lose(t, o.Level)
				}
				continue
			}
			if unbound := b.is.unbinds(o); bound && unbound != "" {
				j.unbind(o, p.Before, p.After, unbound)
				continue
			}
		}
		if loosened != "" {
			if t := j.loosen(o, p.Before, loosened); still {
				j.like.lost = append(j.like.lost, t)
			}
			continue
		}
		if err := j.handedOn(p, b, o, &kept); err != nil {
			return err
		}
	}
	for i, heir := range kept.heirs {
		j.weakenedAfter(p.Before, heir, kept.policies[i])
	}
	return nil
}

// keptOn is the paths that take the traffic of one, each with the policies whose
// overrides they keep.
type keptOn struct {
	heirs    []*effective.Effective
	policies [][]*merge.Policy
}

func (k *keptOn) add(heir *effective.Effective, policy *merge.Policy) {
	i := slices.Index(k.heirs, heir)
	if i < 0 {
		i, k.heirs, k.policies = len(k.heirs), append(k.heirs, heir), append(k.policies, nil)
	}
	if !slices.Contains(k.policies[i], policy) {
		k.policies[i] = append(k.policies[i], policy)
	}
}

// handedOn books an override that does not hold on the paths which take the
// traffic of one that is gone, or that gave up a match, and where it is kept.
func (j *judge) handedOn(p effective.Pair, b boundPair, o effective.Override, kept *keptOn) error {
	at, bound := o, b.was.holds(o)
	triggered := bound && b.was.Triggered()
	if triggered {
		at.Level = gateway.LevelRule // by its triggers it hangs on the rule
	}
	heirs, err := j.heirs(p, at, triggered && o.Level < gateway.LevelRule)
	if err != nil {
		return err
	}
	for _, heir := range heirs {
		if rootless(heir.Path) && carries(heir.Path, o.Level) {
			continue
		}
		if !heir.Sets(o) || j.slips(o, p.Before, heir) {
			j.lose(o, p.Before, heir)
		} else if unbound := j.boundOn(heir).unbinds(o); bound && unbound != "" {
			if p.After == nil && unbound == unmatched {
				unbound = gone
			}
			j.unbind(o, p.Before, heir, unbound)
		} else {
			kept.add(heir, o.Policy)
		}
	}
	return nil
}
