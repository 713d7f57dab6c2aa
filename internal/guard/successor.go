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
		out, err := ev.successorsByName(p, o)
		if err == nil && endsAtListener(x) {
			out, err = ev.addListenerSuccessors(p, out)
		}
		return out, err
	}
	if p.After == nil && ev.routersOf(entryOf(x)).after == nil {
		// most of the time, nothing serves the requests of a gateway that is removed
		if elsewhere, err := ev.successorsByName(p, o); err != nil || len(elsewhere) == 0 {
			return nil, err
		}
	}
	out, ends, err := ev.requestSuccessors(p, o)
	if err != nil || !ends && (p.After != nil || x.Gateway == nil) {
		return out, err
	}
	if d := ev.destinations(x); !ends && len(d.to) == 0 && !d.undecided {
		return out, nil // it had no requests: paths of other listeners had them
	}
	if !ends {
		elsewhere, stays, err := ev.newPaths(p.Before, o.Level)
		for _, y := range elsewhere {
			if !stays {
				out = append(out, successor{Effective: y, unsure: unsureFollows})
			}
		}
		return out, err
	}
	elsewhere, err := ev.successorsByName(p, o)
	undecided := ev.destinations(x).undecided
	for _, y := range elsewhere {
		if undecided || !samePort(x, &y.Path) {
			out = append(out, y)
		}
	}
	return out, err
}

// unsureFollows is why clients may not follow a route to another port or gateway.
const unsureFollows = "other routes serve its requests where it was, and its clients may follow it or not"

// newPaths returns the new paths of the route of a path which ends, at other gateways,
// listeners or Services: clients follow their service. stays is set if the route is still at
// the port of the path.
func (ev *successors) newPaths(x *effective.Effective, level gateway.Level) (out []*effective.Effective, stays bool, err error) {
	s, err := ev.candidatesFor(x)
	if s == nil || err != nil {
		return nil, false, err
	}
	for _, y := range s.after {
		stays = stays || samePort(&x.Path, &y.Path)
		if !s.before[ev.idBefore(s, y.Path)] && !viaUnreadParent(y.Path) && s.mayReceive(x.Path, y.Path, level, false) {
			out = append(out, y)
		}
	}
	return out, stays, nil
}

// endsAtListener reports whether a path ends at a listener.
func endsAtListener(x *gateway.Path) bool {
	return x.Gateway != nil && x.Listener != nil && x.Route == nil
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
		if p.After != nil && sameListener(p.After.Path, gateway.Path{Gateway: to.Gateway, Set: to.Set, Listener: to.Listener}) {
			continue
		}
		paths, err := ev.pathsThrough(x.Gateway.Ref(), p.Before.Kind, true)
		if err != nil {
			return nil, err
		}
		for _, y := range paths {
			l := listenerOf(&y.Path)
			if !endsAtListener(&y.Path) || !l.Same(to) || slices.ContainsFunc(out, func(s successor) bool { return sameListener(s.Path, y.Path) }) {
				continue
			}
			out = append(out, successor{Effective: y})
		}
	}
	return out, nil
}

// successorsByName returns the paths that take the traffic of a path which is removed, by
// the names of listeners and rules.
//
// A path that existed before is a successor only if the same hostnames reach it: a route
// that gives up one of its hostnames moves nothing.
func (ev *successors) successorsByName(p effective.Pair, o effective.Override) ([]successor, error) {
	x := p.Before
	if p.After != nil && !ev.backendLost(p, o) {
		return nil, nil
	}
	s, err := ev.candidatesFor(x)
	if s == nil || err != nil {
		return nil, err
	}
	var out, same, fresh []successor
	var ways []gateway.Path // those of fresh
	for _, y := range s.after {
		known := s.before[ev.idBefore(s, y.Path)]
		if !s.mayReceive(x.Path, y.Path, o.Level, known) || known && !gateway.HostsIntersect(x.Path.Hosts(), y.Path.Hosts()) {
			continue
		}
		out = append(out, successor{Effective: y})
		if sameEntry(x.Path.ID(), ev.idBefore(s, y.Path)) || s.route == nil && sameListenerName(x.Path, y.Path) {
			same = append(same, successor{Effective: y})
		}
		if known {
			continue
		}
		fresh = append(fresh, successor{Effective: y})
		if !viaUnreadParent(y.Path) { // it may take nothing
			ways = append(ways, y.Path)
		}
	}
	switch {
	case len(same) > 0:
		return same, nil // it goes on where it came in: to another backend, say
	case x.Path.CoveredBy(ways):
		return fresh, nil // to new paths: those that were there take nothing more
	default:
		return out, nil
	}
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
// of a path after the write, other than the path itself, and whether some are served by
// nothing there any more.
func (ev *successors) requestSuccessors(p effective.Pair, o effective.Override) (out []successor, ends bool, err error) {
	x, backendLost := p.Before, ev.backendLost(p, o)
	to := ev.from(&x.Path)
	if p.After == nil || backendLost {
		d := ev.destinations(&x.Path)
		to, ends = d.to, d.ends && p.After == nil
	}
	for _, f := range to {
		if p.After != nil && f.To.IsOn(&p.After.Path) && !backendLost {
			continue
		}
		successors, err := ev.successorsAt(x, o, f)
		if err != nil {
			return nil, false, err
		}
		out = append(out, successors...)
	}
	return out, ends, nil
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
