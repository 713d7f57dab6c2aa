package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// findLeft adds the rules of policies on the listeners that the route which is written leaves for
// others, in kinds whose paths end above routes: these do not change, but what is in force for
// requests to the route does.
func (ev *ruleLosses) findLeft() error {
	before, _ := ev.change.Before.(*gateway.Route)
	after, _ := ev.change.After.(*gateway.Route)
	if before == nil || after == nil {
		return nil
	}
	kinds := slices.DeleteFunc(slices.Clone(ev.before.Populated()), func(k *policykind.Kind) bool { return !ev.guard.Engine.EndsAboveRoutes(k) })
	if len(kinds) == 0 {
		return nil
	}
	left, joined := ev.leftListeners(before, after)
	compared := make(map[[2]*merge.Result]bool) // many listeners have the same policies
	for _, k := range kinds {
		for _, from := range left {
			x, err := ev.pathAtListener(k, from, before, false)
			if err != nil {
				return err
			}
			for _, to := range joined {
				y, err := ev.pathAtListener(k, to, after, true)
				if err != nil {
					return err
				}
				if at := [2]*merge.Result{x.Result, y.Result}; !compared[at] {
					compared[at] = true
					p := effective.Pair{Before: x, After: y}
					gone := slices.DeleteFunc(lostRules(p), func(r lostRule) bool { return !r.gone }) // it has no counterpart there
					ev.addMoved(p, gone, ruleLoss{left: true})
				}
			}
		}
	}
	return nil
}

// leftListeners returns the listeners that a route is on before the write alone, and those after
// it alone.
func (ev *ruleLosses) leftListeners(before, after *gateway.Route) (left, joined []*gateway.ListenerMatch) {
	for _, entry := range ev.rerouted().entries {
		at := ev.routersOf(entry)
		if at.mesh {
			continue
		}
		if at.before != nil {
			left = slices.AppendSeq(left, at.before.ListenersOf(before))
		}
		if at.after != nil {
			joined = slices.AppendSeq(joined, at.after.ListenersOf(after))
		}
	}
	was := slices.Clone(left)
	left = slices.DeleteFunc(left, func(l *gateway.ListenerMatch) bool { return slices.ContainsFunc(joined, l.Same) })
	return left, slices.DeleteFunc(joined, func(l *gateway.ListenerMatch) bool { return slices.ContainsFunc(was, l.Same) })
}

// pathAtListener returns the path of a kind at a listener, with a route that it leads to.
func (ev *ruleLosses) pathAtListener(k *policykind.Kind, l *gateway.ListenerMatch, route *gateway.Route, after bool) (*effective.Effective, error) {
	e, err := ev.pathToListener(l, k, after)
	if err != nil {
		return nil, err
	}
	out := *e
	out.Path.Set, out.Path.Listener, out.Path.Route, out.Path.Rule = l.Set, l.Listener, route, -1
	return &out, nil
}
