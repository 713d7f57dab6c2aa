package effective

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

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
// empty. Kinds without a policy cost very little: their paths are not visited, and are
// counted once for all kinds that have the same paths. The error is the budget's.
func (e *Engine) CountStates(v *snapshot.View, b *Budget) (StateCounts, error) {
	kinds := slices.Clone(v.Populated())
	populated := len(kinds)
	representative := make(map[pathLayout]int) // index + 1 of the kind that is counted for all with the layout
	for _, k := range v.Kinds() {
		if o := e.pathLayout(k); !slices.Contains(kinds[:populated], k) && representative[o] == 0 {
			kinds = append(kinds, k)
			representative[o] = len(kinds)
		}
	}
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
		if i >= populated {
			w.kinds[i].countOnly = &counts[i].None
		}
	}
	if err := w.walkPlan(Scope{All: true}.plan(v)); err != nil {
		return nil, err
	}
	out := make(StateCounts, len(v.Kinds()))
	for _, k := range v.Kinds() {
		i := slices.Index(kinds[:populated], k)
		if i < 0 {
			i = representative[e.pathLayout(k)] - 1
		}
		out[k.Ref()] = counts[i]
	}
	return out, nil
}

// pathLayout decides which paths a kind without a policy has.
type pathLayout struct {
	gateway, mesh       bool
	gatewayEnd, meshEnd gateway.Level
	anyRoute, short     bool
	routes              string
	fields              *policykind.Kind // a kind that controls fields of items has a layout of its own
}

func (e *Engine) pathLayout(k *policykind.Kind) pathLayout {
	s := e.shape(k)
	o := pathLayout{
		gateway: s.gateway, mesh: s.mesh, gatewayEnd: s.gatewayEnd, meshEnd: s.meshEnd,
		anyRoute: s.routes == nil, short: k.ShortPaths, routes: strings.Join(slices.Sorted(slices.Values(s.routes)), " "),
	}
	if slices.ContainsFunc(k.Controls(), policykind.Field.InItems) {
		o.fields = k
	}
	return o
}
