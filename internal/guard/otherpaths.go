package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// compareOthers compares the paths of other routes and listeners whose requests the write
// moves, for the overrides on them.
func (ev *evaluation) compareOthers() error {
	if err := ev.compareForOverrides(ev.otherListenersScope(ev.before.Populated())); err != nil {
		return err
	}
	if _, all := ev.change.Object().(*gateway.Gateway); all {
		return nil // no route at it is another one
	}
	return ev.compareForOverrides(ev.othersScope())
}

// compareForOverrides compares the paths of a scope that the write does not touch itself,
// for the overrides on those that end at listeners, or whose requests it moves.
func (ev *evaluation) compareForOverrides(s effective.Scope) error {
	if len(s.Objects) == 0 {
		return nil
	}
	o := ev.forOverrides(ev.before, ev.after)
	err := ev.guard.Engine.Compare(o.before, o.after, s, ev.budget, func(p effective.Pair) error {
		if p.Before == nil || !endsAtListener(&p.Before.Path) && len(o.requests.from(&p.Before.Path)) == 0 {
			return nil
		}
		return o.checkOverrides(p, false)
	})
	if err != nil {
		return fmt.Errorf("compare effective policies of other routes: %w", err)
	}
	if err := o.compareWithoutTerminating(s); err != nil {
		return err
	}
	ev.overrides.addNewLosses(o.overrides.lost)
	for _, f := range o.overrides.weakenings {
		ev.overrides.weakenings.add(f)
	}
	return nil
}

// editsListeners reports whether the write may change which listeners a gateway has.
func (ev *evaluation) editsListeners() bool {
	switch ev.change.Object().(type) {
	case *gateway.Gateway, *gateway.ListenerSet, *gateway.Namespace:
		return true
	default:
		return false
	}
}

// otherListenersScope returns the gateways of a listener set that is written, or of those
// in a namespace that is, which may take connections of their other listeners. It has
// those of some kinds whose paths end at listeners and that can have overrides.
func (ev *evaluation) otherListenersScope(kinds []*policykind.Kind) effective.Scope {
	var s effective.Scope
	for _, k := range kinds {
		if k.MayOverride() && k.Has(api.LevelListener) && !slices.ContainsFunc([]api.LevelName{api.LevelRoute, api.LevelRule, api.LevelBackend}, k.Has) {
			s.Kinds = append(s.Kinds, k.Ref())
		}
	}
	if len(s.Kinds) == 0 {
		return s
	}
	s.Objects = ev.gatewaysOfSets()
	return s
}

// othersScope returns the routes that the write does not edit, and of which it moves
// requests to paths with other policies.
func (ev *evaluation) othersScope() effective.Scope {
	var s effective.Scope
	for _, moves := range ev.requests.moves {
		for _, m := range moves {
			if from := m.From.Route.Ref(); !slices.Contains(s.Objects, from) && !ev.requests.rerouted[from] {
				s.Objects = append(s.Objects, from)
			}
		}
	}
	slices.SortFunc(s.Objects, api.CompareRefs)
	return s
}
