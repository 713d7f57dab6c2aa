package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// successorsOf returns the paths that take the traffic of a path which is removed, or of
// which the write moves requests. There are none where the traffic ends with the path: its
// route or its gateway was deleted, say.
//
// At the port of the path, requests decide. Requests that nothing serves there any more
// may come in by another port or gateway that the route is on after the write, or by a
// parent of an unsupported kind: clients follow their service. So they may where other routes
// serve their requests and the route is there no more: that is unsure.
func (ev *successors) successorsOf(p effective.Pair, o effective.Override) ([]successor, error) {
	x := &p.Before.Path
	if x.Virtual != nil || ev.after.Kind(p.Before.Kind.Ref()) == nil {
		if p.After != nil || x.Virtual != nil && effective.Missing(ev.after, p.Before.Kind, *x.Virtual) {
			return nil, nil
		}
		return []successor{{Effective: &effective.Effective{Kind: p.Before.Kind, Path: *x}}}, nil // it is still there, with no policy
	}
	if !readsRequests(x) {
		return ev.successorsByName(p, o)
	}
	if p.After != nil {
		return ev.requestSuccessors(p, o)
	}
	named, err := ev.pathsByName(p.Before, o.Level)
	if err != nil || len(named.next) == 0 && ev.routersOf(entryOf(x)).after == nil {
		return nil, err // most of the time, nothing serves the requests of a gateway that is removed
	}
	out, err := ev.requestSuccessors(p, o)
	switch d := ev.destinations(x); {
	case d.ends:
		for _, y := range named.next {
			if d.undecided || !samePort(x, &y.Path) {
				out = append(out, successor{Effective: y})
			}
		}
	case x.Gateway != nil && !named.stays && (len(d.to) > 0 || d.undecided): // else it had no requests: paths of other listeners had them
		for _, y := range named.fresh {
			out = append(out, successor{Effective: y, unsure: unsureFollows})
		}
	}
	return out, err
}

// unsureFollows is why clients may not follow a route to another port or gateway.
const unsureFollows = "other routes serve its requests where it was, and its clients may follow it or not"

// endsAtListener reports whether a path ends at a listener.
func endsAtListener(x *gateway.Path) bool {
	return x.Gateway != nil && x.Listener != nil && x.Route == nil
}

// successorsByName returns the successors of a path of which no requests are known.
func (ev *successors) successorsByName(p effective.Pair, o effective.Override) (out []successor, err error) {
	if p.After == nil || ev.backendLost(p, o) {
		named, err := ev.pathsByName(p.Before, o.Level)
		if err != nil {
			return nil, err
		}
		for _, y := range named.next {
			out = append(out, successor{Effective: y})
		}
	}
	if !endsAtListener(&p.Before.Path) {
		return out, nil
	}
	return ev.addListenerSuccessors(p, out)
}

// addListenerSuccessors adds the paths at the other listeners of the gateway that take
// connections of the listener of a path after the write: those with a more specific
// hostname, say.
func (ev *successors) addListenerSuccessors(p effective.Pair, out []successor) ([]successor, error) {
	x := &p.Before.Path
	at := ev.routersOf(x.Gateway.Ref())
	if at.before == nil || at.after == nil {
		return out, nil
	}
	from := listenerOf(x)
	for to := range at.before.ListenersAfter(&from, at.after) {
		y, err := ev.pathToListener(to, p.Before.Kind, true)
		if err != nil {
			return nil, err
		}
		known := func(s successor) bool { return sameListener(s.Path, y.Path) }
		if (p.After == nil || !sameListener(p.After.Path, y.Path)) && !slices.ContainsFunc(out, known) {
			out = append(out, successor{Effective: y})
		}
	}
	return out, nil
}

// namedPaths are the paths that take the traffic of one that is removed, by the names of
// listeners and rules.
type namedPaths struct {
	next  []*effective.Effective
	fresh []*effective.Effective // those that may and are new, at other gateways, listeners or Services
	stays bool                   // the route is still at the port of the path
}

// pathsByName returns the paths that take the traffic of a path which is removed.
//
// A path that existed before takes it only if the same hostnames reach it: a route
// that gives up one of its hostnames moves nothing.
func (ev *successors) pathsByName(x *effective.Effective, level gateway.Level) (out namedPaths, err error) {
	s, err := ev.candidatesFor(x)
	if s == nil || err != nil {
		return out, err
	}
	var all, same, unread []*effective.Effective
	var ways []gateway.Path // those of fresh
	for _, y := range s.after {
		was := ev.idBefore(s, y.Path)
		known := s.before[was]
		out.stays = out.stays || samePort(&x.Path, &y.Path)
		if !s.mayReceive(x.Path, y.Path, level, known) || known && !gateway.HostsIntersect(x.Path.Hosts(), y.Path.Hosts()) {
			continue
		}
		all = append(all, y)
		if sameEntry(x.Path.ID(), was) || s.route == nil && sameListenerName(x.Path, y.Path) {
			same = append(same, y)
		}
		switch {
		case known:
		case viaUnreadParent(y.Path): // it may take nothing
			unread = append(unread, y)
		default:
			out.fresh, ways = append(out.fresh, y), append(ways, y.Path)
		}
	}
	switch {
	case len(same) > 0:
		out.next = same // it goes on where it came in: to another backend, say
	case x.Path.CoveredBy(ways):
		out.next = slices.Concat(out.fresh, unread) // to new paths: those that were there take nothing more
	default:
		out.next = all
	}
	return out, nil
}

// routeEdited reports whether a pair with the same policies may still have lost an
// override: the route was edited, so that a rule's matches or backends may have moved.
func (ev *successors) routeEdited(p effective.Pair) bool {
	return p.Before.Path.Route != p.After.Path.Route && p.Before.Path.Rule >= 0
}

// backendLost reports whether the rule of a path no longer sends requests to its backend.
// It matters to overrides that are attached to that.
func (ev *successors) backendLost(p effective.Pair, o effective.Override) bool {
	if p.After == nil || o.Level < gateway.LevelBackend || !ev.routeEdited(p) {
		return false
	}
	y := &p.After.Path
	return y.Backend != nil && !y.Route.Rules[y.Rule].Serves(*y.Backend)
}

// successor is a path that serves requests of another one after the write.
type successor struct {
	*effective.Effective
	by flow // zero where it is not known which requests
	// unsure says why an override may be kept for these requests, "" if it is not.
	unsure string
}

// requestSuccessors returns the paths at the same gateway or Service that serve requests
// of a path after the write, other than the path itself.
func (ev *successors) requestSuccessors(p effective.Pair, o effective.Override) (out []successor, err error) {
	x, backendLost := p.Before, ev.backendLost(p, o)
	to := ev.from(&x.Path)
	if p.After == nil || backendLost {
		to = ev.destinations(&x.Path).to
	}
	for _, f := range to {
		if p.After != nil && f.To.IsOn(&p.After.Path) && !backendLost {
			continue
		}
		successors, err := ev.successorsAt(x, o, f)
		if err != nil {
			return nil, err
		}
		out = append(out, successors...)
	}
	return out, nil
}

// successorsAt returns the paths along which requests of another one go that move.
func (ev *successors) successorsAt(x *effective.Effective, o effective.Override, f flow) (out []successor, err error) {
	paths, err := ev.nextPaths(x, f.To)
	if err != nil {
		return nil, err
	}
	for _, y := range paths {
		if o.Level < gateway.LevelBackend || takesOver(&x.Path, &y.Path) {
			out = append(out, successor{Effective: y, by: f})
		}
	}
	return out, nil
}
