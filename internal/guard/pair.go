package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// evaluatePair evaluates one path.
func (ev *evaluation) evaluatePair(p effective.Pair) error {
	ev.hasPaths = true
	again := ev.prev.sameEffective(p)
	if !again {
		ev.prev = newPrevPair(p, ev.prev.lost[:0])
	}
	byRequests, err := ev.followRequests(p)
	if err != nil {
		return err
	}
	if byRequests.Before != p.Before || byRequests.After != p.After {
		ev.prev.changed = byRequests.Changed()
		ev.ruleLosses.noteFollowed(byRequests)
	}
	if ev.prev.changed {
		if err := ev.countPath(byRequests, again); err != nil {
			return err
		}
	}
	if err := ev.checkOverrides(p, again); err != nil {
		return err
	}
	ev.limits.add(p)
	if p.After == nil || p.Again {
		return nil
	}
	ev.observeUnread(p)
	if err := ev.evaluateAfter(p); err != nil {
		return err
	}
	for i := range p.After.Outcomes {
		o := &p.After.Outcomes[i]
		if ev.policy != nil && o.Policy == &ev.policy.Policy {
			ev.overriddenRules.ownPaths++
			ev.reach.addOwnReach(p.After)
			ev.overriddenRules.addOwn(byRequests, i)
			policyCheck{ev.write}.checkUnset(p, o)
			continue
		}
		ev.overriddenRules.addOther(byRequests, i)
	}
	ev.overriddenRules.addRoute(byRequests)
	policyCheck{ev.write}.reportSkippedConditions(byRequests)
	return nil
}

// evaluateAfter evaluates what is in force on a path after the write, whether the write
// caused it or not.
func (ev *evaluation) evaluateAfter(p effective.Pair) error {
	ev.weakenings.check(p)
	ev.limits.addDisplaced(p)
	if err := ev.schema.check(p); err != nil {
		return err
	}
	return ev.requirements.check(p)
}

// countPath counts a path whose effective policy changes. again is set if the pair has the
// same effective policies as the previous one.
func (ev *evaluation) countPath(p effective.Pair, again bool) error {
	if ev.backendEnds(p) {
		p.After = nil
	}
	if p.Unreached = ev.reach.notReached(p); p.Unreached != ev.prev.unreached {
		again, ev.prev.unreached = false, p.Unreached
	}
	continued, _, err := ev.continuedElsewhere(p)
	if err != nil {
		return err
	}
	if !again {
		ev.prev.lostRules = lostRules(continued)
		if p.After == nil { // the path ends: what follows its rules elsewhere is no matter
			ev.prev.lostRules = slices.DeleteFunc(ev.prev.lostRules, func(l lostRule) bool { return !l.gone })
		}
	}
	impact := ev.blast.addImpact(p, ev.prev.lostRules)
	covered := p.Unreached || ev.ruleLosses.add(continued, ev.prev.lostRules, again)
	if ev.blast.addGained(p) || covered || ev.blast.choosesBackend(p) {
		impact.covered.add(&p, true)
	}
	if ev.observe != nil {
		ev.observe(p)
	}
	return nil
}

// backendEnds reports whether a path has a backend that the write deletes, or whose port it
// removes: its requests end there.
func (ev *write) backendEnds(p effective.Pair) bool {
	if p.Before == nil || p.After == nil || p.After.Path.Backend == nil {
		return false
	}
	backend := p.After.Path.Backend
	is := ev.after.Get(backend.Object)
	switch was := ev.before.Get(backend.Object).(type) {
	case nil:
		return false
	case *gateway.Service:
		s, ok := is.(*gateway.Service)
		return !ok || was.HasPort(backend.Port) && !s.HasPort(backend.Port)
	default:
		return is == nil
	}
}
