package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// reportDetached reports the route that is written if no listener accepts it, and the routes
// that another write detaches from their parents.
func (ev *evaluation) reportDetached() {
	if ev.change.After == nil {
		return // what depended on the object ends with it
	}
	if r, ok := ev.after.Get(ev.change.After.Ref()).(*gateway.Route); ok {
		ev.reportOwnDetached(r)
		return
	}
	detached := make(map[api.Ref][]*gateway.Route) // by their parents
	for _, old := range ev.rerouted().before {
		r, ok := ev.after.Get(old.Ref()).(*gateway.Route)
		if !ok || effective.IsDelegated(ev.after, r) {
			continue
		}
		for _, parent := range parentRefsOf(r) {
			if effective.RejectedBy(ev.after, r, parent) != "" && effective.RejectedBy(ev.before, old, parent) == "" {
				detached[parent] = append(detached[parent], r)
			}
		}
	}
	for parent, routes := range detached {
		slices.SortFunc(routes, func(a, b *gateway.Route) int { return api.CompareRefs(a.Ref(), b.Ref()) })
		what := fmt.Sprintf("no request would reach %s on %s: %s", routes[0].Ref(), parent, effective.RejectedBy(ev.after, routes[0], parent))
		if more := len(routes) - 1; more > 0 {
			what += fmt.Sprintf("; nor %s", api.Plural(more, "more route"))
		}
		ev.report(api.ReasonUnreached, api.Warn, Finding{What: what})
	}
}

// reportOwnDetached reports the parents that do not accept the route that is written, unless
// they did not before, for the same reason. Parents that do not exist are TargetNotFound.
func (ev *evaluation) reportOwnDetached(r *gateway.Route) {
	old, _ := ev.before.Get(r.Ref()).(*gateway.Route)
	if old == r || effective.IsDelegated(ev.after, r) {
		return
	}
	for _, parent := range parentRefsOf(r) {
		why, more := effective.RejectedBy(ev.after, r, parent), ""
		if why == "" || slices.ContainsFunc(r.Parents, func(p gateway.Parent) bool { return p.Ref() == parent && effective.MissingParent(ev.after, p) != "" }) {
			continue
		}
		if old != nil && slices.Contains(parentRefsOf(old), parent) {
			was := effective.RejectedBy(ev.before, old, parent)
			if was == why {
				continue
			}
			if was == "" {
				more = " any more"
			}
		}
		ev.report(api.ReasonUnreached, api.Warn, Finding{
			What: fmt.Sprintf("no request reaches %s on %s%s: %s", r.Ref(), parent, more, why), Advice: "change that or choose another parent", Field: "spec.parentRefs",
		})
	}
}

// parentRefsOf names the parents of a route, each once.
func parentRefsOf(r *gateway.Route) []api.Ref {
	var out []api.Ref
	for _, p := range r.Parents {
		if ref := p.Ref(); !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}
