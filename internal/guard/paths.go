package guard

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// pathsThrough returns the paths of a kind through a route, or a gateway, after the write or
// before it. They are kept for a while.
func (ev *successors) pathsThrough(object api.Ref, kind *policykind.Kind, after bool) ([]*effective.Effective, error) {
	v, known := ev.before, &ev.pathsBefore
	if after {
		v, known = ev.after, &ev.pathsAfter
	}
	at := candidatesKey{object, kind}
	if out, ok := (*known)[at]; ok {
		return out, nil
	}
	out, err := ev.walk(v, kind, object)
	if err != nil {
		return nil, err
	}
	if len(*known) >= maxCandidateSets || *known == nil {
		*known = make(map[candidatesKey][]*effective.Effective)
	}
	(*known)[at] = out
	return out, nil
}

// walk returns the paths of a kind through some objects.
func (ev *successors) walk(v *snapshot.View, kind *policykind.Kind, objects ...api.Ref) (out []*effective.Effective, err error) {
	kinds := []api.PolicyKind{kind.Ref()}
	err = ev.guard.Engine.Walk(v, effective.Scope{Objects: objects, Kinds: kinds, Empty: kinds}, false, ev.budget, func(e *effective.Effective) error {
		out = append(out, e)
		return nil
	})
	return out, err
}

// pathsTo returns the paths of a kind along which requests go that a rule serves. In a mesh,
// they are those of the clients in a namespace if they have their own, and those of all
// clients for "".
func (ev *successors) pathsTo(s gateway.Served, kind *policykind.Kind, client string, after bool) ([]*effective.Effective, error) {
	paths, err := ev.pathsThrough(s.Route.Ref(), kind, after)
	client = cmp.Or(s.Listener.Client, client)
	var all, own []*effective.Effective
	for _, y := range paths {
		switch {
		case !readsRequests(&y.Path) || !s.IsOn(&y.Path):
		case client != "" && y.Path.Client == client:
			own = append(own, y)
		case client == "" || y.Path.Client == "":
			all = append(all, y)
		}
	}
	if len(own) > 0 {
		return own, err
	}
	return all, err
}

// nextPaths returns the paths along which requests of a path go that a rule serves after the
// write. By a route of a kind that policies of its kind do not apply to, they have none.
func (ev *successors) nextPaths(x *effective.Effective, to gateway.Served) ([]*effective.Effective, error) {
	paths, err := ev.pathsTo(to, x.Kind, x.Path.Client, true)
	if err != nil || len(paths) > 0 || x.Path.Backend != nil && ev.guard.Engine.AppliesTo(x.Kind, to.Route.Kind) {
		return paths, err
	}
	p := to.Path()
	without := func() { paths = append(paths, &effective.Effective{Kind: x.Kind, Path: p, Result: &noPolicies}) }
	if x.Path.Backend == nil {
		without()
		return paths, nil
	}
	for _, b := range to.Route.Rules[to.Rule].Backends {
		p.Backend = &b
		without()
	}
	return paths, nil
}

// pathToListener returns the path of a kind that ends at a listener or above it: one without
// policies where the kind has none there.
func (ev *successors) pathToListener(l *gateway.ListenerMatch, kind *policykind.Kind, after bool) (*effective.Effective, error) {
	paths, err := ev.pathsThrough(l.Gateway.Ref(), kind, after)
	for _, e := range paths {
		if at := listenerOf(&e.Path); e.Path.Listener == nil || at.Same(l) {
			return e, err
		}
	}
	return &effective.Effective{Kind: kind, Path: gateway.Path{Gateway: l.Gateway}, Result: &noPolicies}, err
}

// noPolicies is the result of a path without policies.
var noPolicies merge.Result

// takesOver reports whether the backend of a path after the write receives requests that the
// backend of another one received before it, given that its rule does. If the rule still has
// that backend, only this receives them; else those that the rule before did not have, or all
// if there is none.
func takesOver(x, y *gateway.Path) bool {
	if x.Backend == nil || y.Backend == nil {
		return false
	}
	before, after := &x.Route.Rules[x.Rule], &y.Route.Rules[y.Rule]
	isNew := func(b gateway.Backend) bool { return after.Serves(b) && !before.Serves(b) }
	switch {
	case !before.Serves(*x.Backend) || !after.Serves(*y.Backend):
		return false
	case after.Serves(*x.Backend):
		return *y.Backend == *x.Backend
	default:
		return isNew(*y.Backend) || !slices.ContainsFunc(after.Backends, isNew)
	}
}

// ruleBefore returns the position before the write of the rule of a path after it, -1 for none,
// in the route of another path; its own if that is of another route.
func ruleBefore(x, y *gateway.Path) int {
	if y.Rule < 0 || x.Route == nil || x.Route.Ref() != y.Route.Ref() {
		return y.Rule
	}
	return gateway.MatchRules(x.Route, y.Route)[y.Rule]
}

// sameBackend reports whether a path goes to the backend of another one, if that has one.
func sameBackend(x, y *gateway.Path) bool {
	return y.Backend == nil || x.Backend != nil && *x.Backend == *y.Backend
}

// sameListener reports whether two paths have the same listener, or the same service.
func sameListener(x, y gateway.Path) bool { return sameEntry(x.ID(), y.ID()) }

func sameEntry(a, b gateway.ID) bool {
	return a.GatewayNamespace == b.GatewayNamespace && a.Gateway == b.Gateway &&
		a.SetKind == b.SetKind && a.SetNamespace == b.SetNamespace && a.Set == b.Set && a.Listener == b.Listener &&
		a.ServiceNamespace == b.ServiceNamespace && a.Service == b.Service
}

// samePort reports whether two paths come in by the same port of one gateway, or of one
// Service.
func samePort(x, y *gateway.Path) bool {
	if x.Service != nil {
		return y.Service != nil && y.Service.Ref() == x.Service.Ref() && (x.Port == 0 || y.Port == 0 || x.Port == y.Port)
	}
	return x.Listener != nil && y.Listener != nil && y.Gateway != nil && y.Gateway.Ref() == x.Gateway.Ref() && y.Listener.SamePort(x.Listener)
}

// sameListenerName reports whether two paths have the same listener, perhaps on different
// gateways.
func sameListenerName(x, y gateway.Path) bool {
	a, b := x.ID(), y.ID()
	return a.SetKind == b.SetKind && a.SetNamespace == b.SetNamespace && a.Set == b.Set && a.Listener == b.Listener
}

// namespaces are those of the objects of a path.
type namespaces struct{ gateway, set, service, route, backend string }

func namespacesOf(p *gateway.Path) (n namespaces) {
	if p.Gateway != nil {
		n.gateway = p.Gateway.Namespace
	}
	if p.Set != nil {
		n.set = p.Set.Namespace
	}
	if p.Service != nil {
		n.service = p.Service.Namespace
	}
	if p.Route != nil {
		n.route = p.Route.Namespace
	}
	switch {
	case p.Backend != nil:
		n.backend = p.Backend.Object.Namespace
	case p.Virtual != nil:
		n.backend = p.Virtual.Namespace
	}
	return n
}
