package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
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
	j.held = p.Before.AppendOverrides(j.held[:0])
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

// lose books the loss of an override that held on a path; it is not given on
// one that the traffic takes now. It returns where it is booked.
func (j *judge) lose(o effective.Override, was, is *effective.Effective) *overrideTally {
	standIns := j.staying(o, was, is, is.Substitutes(o))
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: j.causeOf(was, o)}
	for _, p := range standIns {
		l.standIns += was.Ref(p).Key() + " "
	}
	return j.tally(overrideTally{lostOverride: l, was: was, is: is, standIns: standIns})
}

// loosen books an override that is given on a path as before, and is less
// protected from now on: a user who is not allowed to remove it must not prepare that, either.
func (j *judge) loosen(o effective.Override, was *effective.Effective, how string) *overrideTally {
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideRemoved, loosened: how}
	return j.tally(overrideTally{lostOverride: l, was: was})
}

// tally books the path of a loss, and returns where it is booked.
func (j *judge) tally(loss overrideTally) *overrideTally {
	if j.lostOverrides == nil {
		j.lostOverrides = make(map[lostOverride]*overrideTally)
	}
	t := j.lostOverrides[loss.lostOverride]
	if t == nil {
		t = &loss
		j.lostOverrides[loss.lostOverride] = t
	}
	t.book(j.pairs)
	return t
}

// unbind books the loss of an override that is given on a path, and not bound to
// its rule any more.
func (j *judge) unbind(o effective.Override, was, is *effective.Effective, why string) {
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded, unbound: why}
	if !j.orphaned && j.old != nil && j.old.Ref() == was.Ref(o.Policy) {
		l.code = api.ReasonOverrideRemoved
	}
	j.tally(overrideTally{lostOverride: l, was: was, is: is})
}

// book books a path, by the number of its pair.
func (t *overrideTally) book(pair int32) {
	if n := len(t.paths); n == 0 || t.paths[n-1] != pair {
		t.paths = append(t.paths, pair)
	}
}

// lostOverride is what losses of overrides are told apart by.
type lostOverride struct {
	kind     api.PolicyKind
	policy   *merge.Policy
	rule     string
	code     api.ReasonCode
	standIns string // their names
	unbound  string // why it is not bound any more, "" where that is not why
	loosened string // in what respects it is less protected, "" where it is lost
}

// overrideTally adds up losses; the first path stands for all.
type overrideTally struct {
	lostOverride
	was, is  *effective.Effective
	standIns []*merge.Policy
	paths    []int32 // each once, by the number of its pair
	mine     bool    // the writer may
	version  string  // by which the policies would have to be written, "" for none
}

// causeOf tells an override that its own policy gives up from one that is lost
// because something else is changed, its policy's target included. It is the same
// on every path.
func (j *judge) causeOf(was *effective.Effective, o effective.Override) api.ReasonCode {
	code, known := j.causes[o.Rule]
	if !known {
		if j.causes == nil {
			j.causes = make(map[*merge.Rule]api.ReasonCode)
		}
		code = j.findCause(was, o)
		j.causes[o.Rule] = code
	}
	return code
}

func (j *judge) findCause(was *effective.Effective, o effective.Override) api.ReasonCode {
	switch {
	case j.orphaned:
		return api.ReasonOverrideEvaded
	case j.old == nil || j.old.Ref() != was.Ref(o.Policy):
		return api.ReasonOverrideEvaded
	case j.policy != nil && j.policy.Invalid == nil && written(&j.policy.Policy, o):
		return api.ReasonOverrideEvaded
	default:
		return api.ReasonOverrideRemoved
	}
}

// written reports whether a policy has a rule as an override of it has it,
// wherever it is attached. How a bare block is read is not for the policy to
// say where its override is one.
func written(p *merge.Policy, o effective.Override) bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		when := ""
		if b.When != nil {
			when = b.When.String()
		}
		bare := b.Block == merge.Bare && o.Block == merge.Bare
		r := b.At(o.Key)
		return (bare || b.Block == merge.Overrides && (b.Strategy == merge.Atomic || !o.Atomic)) && (when == "" || when == o.When) &&
			r != nil && r.EmptyMap == o.EmptyMap && merge.Equal(r.Value, o.Value)
	})
}
