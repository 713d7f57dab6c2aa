package guard

import (
	"cmp"
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// formerPaths are the paths before the write that served requests of one after it.
type formerPaths struct {
	others []*effective.Effective // other ones than the one that it is paired with
	stays  bool                   // so did that one
	fresh  bool                   // some requests were served by nothing, or may have been
	starts bool                   // some of them by nothing in any implementation
}

// formerPathsOf returns which paths served the requests of a path before the write. The
// paths of routes, gateways and listener sets that the write creates have none: what is
// created has to comply.
func (ev *successors) formerPathsOf(p effective.Pair) (formerPaths, error) {
	out := formerPaths{stays: p.Before != nil, fresh: p.Before == nil}
	y := &p.After.Path
	if !ev.editsRouting() || !readsRequests(y) || p.Before != nil && !readsRequests(&p.Before.Path) {
		return out, nil
	}
	at := ev.routersOf(entryOf(y))
	if at.before == nil {
		return out, nil
	}
	arrivals, err := ev.arrivalsAt(at)
	if err != nil {
		return out, err
	}
	if p.Before != nil {
		_, out.stays = ev.staying(p)
	}
	out.fresh, out.starts = at.newRequests(y)
	out.fresh = out.fresh || at.arrivalsUnknown
	for _, from := range ofRules(arrivals, at.after, y) {
		if p.Before != nil && from.IsOn(&p.Before.Path) {
			continue
		}
		paths, err := ev.counterparts(p.After, from, false)
		if err != nil {
			return out, err
		}
		out.others = appendNew(out.others, slices.Values(paths))
	}
	return out, nil
}

// followRequests returns the pair that tells what happens to the requests of a path that
// is new or removed: with the path that served them before, or that serves them after it.
// Of several, it is one with another effective policy, if there is one. The pair stays as
// it is where some requests are new, or end, and where its clients may follow the route to a
// path with another effective policy.
func (ev *successors) followRequests(p effective.Pair) (effective.Pair, error) {
	if p.Before != nil && p.After != nil || !ev.editsRouting() {
		return p, nil
	}
	if p.Before == nil {
		former, err := ev.formerPathsOf(p)
		if err != nil || former.fresh {
			return p, err
		}
		return withChange(p, former.others), nil
	}
	if !readsRequests(&p.Before.Path) || ev.routersOf(entryOf(&p.Before.Path)).after == nil {
		return p, nil
	}
	d := ev.destinations(&p.Before.Path)
	if d.ends {
		return p, nil
	}
	var next []*effective.Effective
	for _, f := range d.to {
		paths, err := ev.counterparts(p.Before, f.To, true)
		if err != nil {
			return p, err
		}
		next = append(next, paths...)
	}
	followed := withChange(p, next)
	if followed.After == nil || followed.Changed() {
		return followed, nil
	}
	continued, stays, err := ev.continuedElsewhere(p)
	if err != nil || continued.After != nil && continued.Changed() && !stays {
		return p, err
	}
	return followed, nil
}

// counterparts returns the paths along which requests go that a rule serves after the write,
// or before it, to the backend of another path of theirs.
func (ev *successors) counterparts(of *effective.Effective, s gateway.Served, after bool) ([]*effective.Effective, error) {
	paths, err := ev.pathsTo(s, of.Kind, of.Path.Client, after)
	return slices.DeleteFunc(paths, func(e *effective.Effective) bool { return !sameBackend(&e.Path, &of.Path) }), err
}

// continuedElsewhere returns the pair of a path that ends and of a new one of its route, and
// whether the route is still at the port of the path. Any other pair stays as it is.
func (ev *successors) continuedElsewhere(p effective.Pair) (continued effective.Pair, stays bool, err error) {
	if _, ok := ev.change.Object().(*gateway.Gateway); ok || p.After != nil || !ev.editsRouting() || !readsRequests(&p.Before.Path) {
		return p, false, nil
	}
	named, err := ev.pathsByName(p.Before, gateway.LevelGateway)
	fresh := slices.DeleteFunc(named.fresh, func(y *effective.Effective) bool { return !sameBackend(&y.Path, &p.Before.Path) })
	return withChange(p, fresh), named.stays, err
}

// withChange returns a pair with another path for the one that it lacks: the first with which
// the effective policy changes, else the first one. It is p if there is none.
func withChange(p effective.Pair, others []*effective.Effective) effective.Pair {
	with := func(e *effective.Effective) effective.Pair {
		return effective.Pair{Before: cmp.Or(p.Before, e), After: cmp.Or(p.After, e), Unit: p.Unit}
	}
	if len(others) == 0 {
		return p
	}
	i := slices.IndexFunc(others, func(o *effective.Effective) bool { return with(o).Changed() })
	return with(others[max(i, 0)])
}
