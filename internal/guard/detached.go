package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// reportDetached reports the route that is written if it has parentRefs that are not accepted,
// and the routes that another write detaches from their parents.
func (ev objectCheck) reportDetached() {
	if ev.change.After == nil {
		ev.reportDeletedParents()
		return
	}
	if r, ok := ev.after.Get(ev.change.After.Ref()).(*gateway.Route); ok {
		ev.reportOwnDetached(r)
		return
	}
	detached := make(map[gateway.Parent][]string) // what happens to each route
	re := ev.rerouted()
	for _, entry := range re.entries {
		if at := ev.routersOf(entry); at.before != nil && at.after != nil {
			re = ev.reroutedAt(at, re)
		}
	}
	for _, old := range re.before {
		r, ok := ev.after.Get(old.Ref()).(*gateway.Route)
		if !ok || effective.IsDelegated(ev.after, r) {
			continue
		}
		is := effective.Rejections(ev.after, r, r.Parents)
		if len(is) == 0 {
			continue
		}
		was := effective.Rejections(ev.before, old, old.Parents)
		for _, x := range is {
			if why, _ := x.Before(old, was); why != "" {
				continue
			}
			what := fmt.Sprintf("a parentRef of %s would have no effect: %s", ev.routeName(r), x.Why)
			if x.Whole() {
				what = fmt.Sprintf("no request would reach %s on %s: %s", ev.routeName(r), x.Ref(), x.Why)
			}
			detached[x.Parent] = append(detached[x.Parent], what)
		}
	}
	for _, all := range detached {
		ev.warn(api.ReasonUnreached, Finding{}, "%s%s", slices.Min(all), api.More("; nor ", len(all)-1, "route"))
	}
}

// reportOwnDetached reports the parentRefs of the route that is written that are not accepted,
// unless they were not before, for the same reason. Those that refer to nothing are
// TargetNotFound.
func (ev objectCheck) reportOwnDetached(r *gateway.Route) {
	old, _ := ev.before.Get(r.Ref()).(*gateway.Route)
	if old == r || effective.IsDelegated(ev.after, r) {
		return
	}
	found := slices.DeleteFunc(slices.Clone(r.Parents), func(p gateway.Parent) bool { return effective.MissingParent(ev.after, p) != "" })
	is := effective.Rejections(ev.after, r, found)
	var was []effective.Rejection
	if old != nil && len(is) > 0 {
		was = effective.Rejections(ev.before, old, old.Parents)
	}
	for _, x := range is {
		more := ""
		if old != nil {
			why, had := x.Before(old, was)
			if had && why == x.Why {
				continue
			}
			if had && why == "" {
				more = " any more"
			}
		}
		ev.report(api.ReasonUnreached, api.Warn, Finding{What: x.Text(r, more), Advice: "change that or choose another parent", Field: "spec.parentRefs"})
	}
}
