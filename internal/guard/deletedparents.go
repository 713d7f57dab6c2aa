package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// reportDeletedParents reports the routes that remain without a parent which is deleted: a
// gateway with its listener sets, a listener set, a Service, or all of these in a namespace.
func (ev objectCheck) reportDeletedParents() {
	accepts := func(v *snapshot.View, r *gateway.Route) func(gateway.Parent) bool {
		return func(p gateway.Parent) bool { return len(effective.Rejections(v, r, []gateway.Parent{p})) == 0 }
	}
	var alone, others []api.Ref // without another parent, and with one
	var namespaces set[string]
	for r := range ev.routesOfDeleted() {
		if ev.after.Get(r.Ref()) == nil || effective.IsDelegated(ev.after, r) {
			continue
		}
		was, is := accepts(ev.before, r), accepts(ev.after, r)
		switch {
		case !slices.ContainsFunc(r.Parents, func(p gateway.Parent) bool { return was(p) && !is(p) }):
			continue
		case len(r.Unread) == 0 && !slices.ContainsFunc(r.Parents, is):
			alone = append(alone, r.Ref())
		default:
			others = append(others, r.Ref())
		}
		namespaces.add(r.Namespace)
	}
	slices.SortFunc(alone, api.CompareRefs)
	slices.SortFunc(others, api.CompareRefs)
	if routes := slices.Concat(alone, others); len(routes) > 0 {
		ev.reportWithoutParent(routes, len(alone), namespaces.count())
	}
}

// reportWithoutParent reports routes of a number of namespaces that a deletion leaves without
// a parent, of which the first have no other one.
func (ev objectCheck) reportWithoutParent(routes []api.Ref, alone, namespaces int) {
	parent := ev.change.Before.Ref().String()
	if _, ok := ev.change.Before.(*gateway.Namespace); ok {
		parent = "parents in " + parent
	}
	others := fmt.Sprintf("no other parent accepts %d of them", alone)
	switch one := len(routes) == 1; {
	case alone == 0 && one:
		others = "another parent accepts it"
	case alone == 0:
		others = "another parent accepts each of them"
	case one:
		others = "no other parent accepts it"
	case alone == len(routes):
		others = "no other parent accepts them"
	}
	text := func(routes, names string) string {
		return fmt.Sprintf("no request would reach %s on %s, which is deleted%s; %s", routes, parent, names, others)
	}
	count := fmt.Sprintf("%s in %s", api.Plural(len(routes), "route"), api.Plural(namespaces, "namespace"))
	f := Finding{Short: text(count, "")}
	readable := slices.DeleteFunc(slices.Clone(routes), func(r api.Ref) bool { return !ev.reads(r.Namespace) })
	switch {
	case len(readable) == 0:
		f.What, f.Advice = f.Short, "kubectl overrule check --delete names them"
	case len(readable) == len(routes) && len(routes) <= maxNamed:
		f.What = text(joinRefs(routes), "")
	default:
		f.What = text(count, ": "+joinSome(readable, len(routes)))
	}
	ev.report(api.ReasonUnreached, api.Warn, f)
}

// routesOfDeleted returns the routes with a parent that the write deletes, or that is a listener
// set of such a gateway.
func (ev objectCheck) routesOfDeleted() map[*gateway.Route]bool {
	out := make(map[*gateway.Route]bool)
	for _, deleted := range append(ev.change.deletedToo(ev.before), snapshot.Delete(ev.change.Before.Ref())) {
		parents := []api.Ref{deleted.Ref}
		if g, ok := ev.before.Get(deleted.Ref).(*gateway.Gateway); ok {
			for s := range ev.before.SetsOf(g) {
				parents = append(parents, s.Ref())
			}
		}
		for _, parent := range parents {
			for r := range ev.before.RoutesOf(parent) {
				out[r] = true
			}
		}
	}
	return out
}
