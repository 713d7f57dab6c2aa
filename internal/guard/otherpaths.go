package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// compareOthers compares the paths of other routes and listeners whose requests the write
// moves, for the overrides on them.
func (ev *overrides) compareOthers() error {
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
func (ev *overrides) compareForOverrides(s effective.Scope) error {
	if len(s.Objects) == 0 {
		return nil
	}
	o := ev.variant(ev.before, ev.after)
	err := ev.compareVariant(o, s, "of other routes", func(p effective.Pair) error {
		if p.Before == nil || !endsAtListener(&p.Before.Path) && len(o.from(&p.Before.Path)) == 0 {
			return nil
		}
		return o.checkOverrides(p, false)
	})
	if err != nil {
		return err
	}
	if err := o.compareWithoutTerminating(s); err != nil {
		return err
	}
	ev.addNewLosses(o)
	return nil
}

// otherListenersScope returns the gateways of a listener set that is written, or of those
// in a namespace that is, which may take connections of their other listeners. It has
// those of some kinds whose paths end at listeners and that can have overrides.
func (ev *requests) otherListenersScope(kinds []*policykind.Kind) effective.Scope {
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
func (ev *requests) othersScope() effective.Scope {
	var s effective.Scope
	for _, moves := range ev.moves {
		for _, m := range moves {
			if from := m.From.Route.Ref(); !slices.Contains(s.Objects, from) && !ev.edited[from] {
				s.Objects = append(s.Objects, from)
			}
		}
	}
	slices.SortFunc(s.Objects, api.CompareRefs)
	return s
}

// compareWithoutTerminating compares the paths of a scope again without the terminating
// policies, to find the overrides that apply once these are deleted.
func (ev *overrides) compareWithoutTerminating(s effective.Scope) error {
	if len(ev.terminating.policies) == 0 {
		return nil
	}
	o := ev.variant(ev.terminating.without(ev.before), ev.terminating.without(ev.after))
	s.Empty = nil
	if err := ev.compareVariant(o, s, "without those that are terminating", func(p effective.Pair) error { return o.checkOverrides(p, false) }); err != nil {
		return err
	}
	o.weakenings.pending = nil
	ev.addNewLosses(o)
	return nil
}

// variant returns the overrides of the same write on other paths, or in other views, of which
// none is lost yet. Their paths have other numbers.
func (ev *overrides) variant(before, after *snapshot.View) *overrides {
	w := ev.between(before, after)
	w.policy = ev.policy
	o := newOverrides(w, ev.blast)
	*o.requests = *ev.requests
	o.write, o.pairs = w, ev.pairs
	return o
}

// compareVariant compares the paths of a scope between the views of a variant.
func (ev *overrides) compareVariant(o *overrides, s effective.Scope, which string, visit func(effective.Pair) error) error {
	if err := ev.guard.Engine.Compare(o.before, o.after, s, ev.budget, visit); err != nil {
		return fmt.Errorf("compare effective policies %s: %w", which, err)
	}
	return nil
}

// addNewLosses adds losses and weakenings that were not found before.
func (ev *overrides) addNewLosses(more *overrides) {
	for key, l := range more.lost {
		if ev.lost[key] == nil {
			put(&ev.lost, key, l)
		}
	}
	for _, f := range more.weakenings.pending {
		ev.weakenings.pending.add(f)
	}
}
