package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// stake knows what is at stake where requests move between two rules: whether they may
// leave an override, or reach what weakens one. It decides by the policies that are
// attached to both, and by nothing else.
type stake struct{ before, after *effective.Attachments }

// stakeOf returns what is at stake in the write; nil if nothing is, since there is no policy
// of a kind for which that may be.
func (ev *requests) stakeOf(may func(*policykind.Kind) bool) *stake {
	kinds := ev.before.Populated()
	if !slices.ContainsFunc(kinds, may) {
		return nil
	}
	if ev.stake == nil {
		engine := ev.guard.Engine
		ev.stake = &stake{engine.Attachments(ev.before, kinds), engine.Attachments(ev.after, kinds)}
	}
	return ev.stake
}

// policies returns the policies on requests to a rule, an *effective.Attached.
func (s *stake) policies(at gateway.Served, after bool) any {
	if after {
		return s.after.Of(at.Listener, at.Route, at.Rule)
	}
	return s.before.Of(at.Listener, at.Route, at.Rule)
}

// mayLose reports whether requests that move between two rules with such policies may lose
// an override.
func mayLose(from, to any) bool {
	return from.(*effective.Attached).MayLose(to.(*effective.Attached)) //nolint:forcetypeassert // policies returns nothing else
}
