package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// RulesState returns the state of a policy on one path by its rules alone (SEMANTICS
// section 6).
func RulesState(o *merge.Outcome) api.State {
	switch {
	case !o.TookPart && o.Skipped:
		return api.Inactive
	case len(o.Lost) == 0:
		return api.Enforced
	case len(o.Lost) == o.Rules:
		return api.Overridden
	default:
		return api.PartiallyEnforced
	}
}

// State returns the state of the policies on the path together: empty if there are
// none, Inactive if none of their rules is in force, Enforced if no rule was lost, else
// PartiallyEnforced.
func (e *Effective) State() api.State {
	state := api.State("")
	for i := range e.Outcomes {
		switch s := RulesState(&e.Outcomes[i]); {
		case s == api.Inactive && state == "":
			state = api.Inactive
		case s == api.Enforced && (state == "" || state == api.Inactive):
			state = api.Enforced
		case s == api.PartiallyEnforced || s == api.Overridden:
			return api.PartiallyEnforced
		}
	}
	return state
}

// States counts paths by state (Effective.State). None counts those without a policy.
type States struct{ Enforced, PartiallyEnforced, Inactive, None int }

func (s *States) add(state api.State) {
	switch state {
	case api.Enforced:
		s.Enforced++
	case api.PartiallyEnforced:
		s.PartiallyEnforced++
	case api.Inactive:
		s.Inactive++
	default:
		s.None++
	}
}

// StateCounts counts the paths of each policy kind by state.
type StateCounts map[api.PolicyKind]States

// CountStates counts the paths of all kinds of a view, those that Walk visits with
// empty. Kinds without a policy cost very little: their paths are not visited. The error is
// the budget's.
func (e *Engine) CountStates(v *snapshot.View, b *Budget) (StateCounts, error) {
	kinds, populated := v.Kinds(), v.Populated()
	counts := make([]States, len(kinds))
	place := 0 // paths come kind by kind
	w := newWalk(e, v, kinds, b, func(x *Effective) error {
		if kinds[place] != x.Kind {
			place = slices.Index(kinds, x.Kind)
		}
		counts[place].add(x.State())
		return nil
	})
	w.reuseResults = true
	for i := range w.kinds {
		w.kinds[i].empty = true
		if !slices.Contains(populated, kinds[i]) {
			w.kinds[i].countOnly = &counts[i].None
		}
	}
	if err := w.walkPlan(Scope{All: true}.plan(v)); err != nil {
		return nil, err
	}
	out := make(StateCounts, len(kinds))
	for i, k := range kinds {
		out[k.Ref()] = counts[i]
	}
	return out, nil
}
