package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// followedPair is a path that begins or ends with the write, and the path that its requests
// were on before it, or are on after it.
type followedPair struct {
	kind          *policykind.Kind
	before, after gateway.ID
}

// noteFollowed notes that the rules of a pair are compared.
func (ev *ruleLosses) noteFollowed(p effective.Pair) {
	put(&ev.followed, followedPair{p.Before.Kind, p.Before.Path.ID(), p.After.Path.ID()}, true)
}

// findMoved adds the rules that requests lose which move between routes, rules or listeners,
// though each of the paths may keep its rules: to routes that exist, or to some that are
// awaited. Where the same policies are on all of these routes, it looks at no match.
func (ev *ruleLosses) findMoved(awaited ...*gateway.Route) error {
	re := ev.rerouted()
	if len(re.entries) == 0 {
		return nil
	}
	s := ev.stakeOf(func(*policykind.Kind) bool { return true })
	if s == nil {
		return nil
	}
	later := len(awaited) > 0
	known := make(map[[2]rulePlace]bool)
	places := func(from, to gateway.Served) [2]rulePlace {
		return [2]rulePlace{placeOfServed(from), placeOfServed(to)}
	}
	limits := gateway.MoveLimits{
		Policies: s.policies,
		AtStake:  func(from, to any) bool { return len(mayLoseRules(from, to)) > 0 },
		Known:    func(from, to gateway.Served) bool { return known[places(from, to)] },
		Work:     new(int),
		MaxWork:  maxMovedRulesWork,
	}
	for _, entry := range re.entries {
		at := ev.routersOf(entry)
		if at.before == nil || at.after == nil || at.settled {
			continue
		}
		var spent error // then nothing more is found
		here := reroutedObject{after: awaited}
		if !later {
			here = ev.reroutedAt(at, re)
		}
		for r := range at.readings(slices.Concat(here.before, here.after)...) {
			for m := range ev.movesUnder(r, here, limits, &spent) {
				if m.Unsearched || ev.more {
					break
				}
				if m.Request == nil || later && !at.keepsListener(m.From) {
					continue
				}
				known[places(m.From, m.To)] = true
				unsure := r.why
				if later {
					unsure = unsureAwaited
				}
				for _, k := range mayLoseRules(s.policies(m.From, false), s.policies(m.To, true)) {
					if err := ev.addMove(m, k, unsure); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// findAwaited adds the rules that requests lose once a route is attached to a listener that the
// write adds, given the write with such routes.
func (ev *ruleLosses) findAwaited(with *successors, routes []*gateway.Route) error {
	now := ev.successors
	ev.successors = with
	defer func() { ev.successors = now }()
	return ev.findMoved(routes...)
}

// addMove adds what requests lose that move between two rules, of policies of a kind.
func (ev *ruleLosses) addMove(m gateway.Move, k *policykind.Kind, unsure string) error {
	before, err := ev.pathsTo(m.From, k, "", false)
	if err != nil {
		return err
	}
	for _, x := range before {
		after, err := ev.nextPaths(x, m.To)
		if err != nil {
			return err
		}
		for _, y := range after {
			p := effective.Pair{Before: x, After: y}
			if !ev.comparedByPath(p) {
				ev.addMoved(p, withoutBackends(p, lostRules(p)), ruleLoss{ruleLossKey: ruleLossKey{moved: true, unsure: unsure}, request: m.Shown()})
			}
		}
	}
	return nil
}

// comparedByPath reports whether a pair is that of one path before and after the write, or
// of one that begins or ends with it.
func (ev *ruleLosses) comparedByPath(p effective.Pair) bool {
	x, y := &p.Before.Path, &p.After.Path
	if ev.followed[followedPair{p.Before.Kind, x.ID(), y.ID()}] {
		return true
	}
	id := ev.listenersBefore(y.Gateway).ID(*y)
	id.Rule = ruleBefore(x, y)
	return id == x.ID()
}

// withoutBackends leaves out the rules of policies on backends: those of a path apply to
// what is sent to them, whatever route sends it.
func withoutBackends(p effective.Pair, lost []lostRule) []lostRule {
	return slices.DeleteFunc(lost, func(r lostRule) bool { return p.Before.Level(r.from) >= gateway.LevelBackend })
}

// mayLoseRules returns the kinds of which requests that move between two rules with such
// policies may lose rules.
func mayLoseRules(from, to any) []*policykind.Kind {
	return from.(*effective.Attached).MayLoseRules(to.(*effective.Attached)) //nolint:forcetypeassert // policies returns nothing else
}
