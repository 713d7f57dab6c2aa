package effective

import (
	"slices"

	"overrule.dev/overrule/internal/gateway"
)

// ownPaths visits the paths that end at the service that is the root, if it is
// walked as a whole.
func (w *walk) servicePath(whole bool) error {
	for i := range w.kinds {
		k := &w.kinds[i]
		if !whole || !k.shape.mesh || k.shape.meshEnd != gateway.LevelService {
			continue
		}
		if err := w.servicePaths(i, gateway.Path{Service: w.root.service, Rule: -1}, 0); err != nil {
			return err
		}
	}
	return nil
}

// meshRoute visits the paths from a service through a route that names it as its
// parent. Routes of its own namespace are its producers'; one of another
// namespace is a consumer's, and touches only clients of that namespace.
func (w *walk) meshRoute(r *gateway.Route) error {
	w.enterRoute(r)
	p := gateway.Path{Service: w.root.service, Route: r, Rule: -1}
	if r.Namespace != p.Service.Namespace {
		p.Client = r.Namespace
	}
	for i := range w.kinds {
		k := &w.kinds[i]
		if !k.shape.mesh || k.shape.meshEnd == gateway.LevelService || !k.shape.includesRoute(r.Kind) {
			continue
		}
		for _, port := range r.PortsOf(p.Service) {
			if err := w.servicePaths(i, p, port); err != nil {
				return err
			}
		}
	}
	return nil
}

// servicePaths visits the paths from a service on: one for each port where the
// route or a policy tells them apart, and one for each namespace of clients
// that has a policy of its own.
func (w *walk) servicePaths(kind int, p gateway.Path, port int32) error {
	k := &w.kinds[kind]
	clients := []string{p.Client}
	if p.Client == "" {
		clients = append(clients, w.clients(kind, p.Route)...)
	}
	for _, p.Port = range k.ports(p.Service, port) {
		for _, p.Client = range clients {
			if err := w.fromService(kind, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// ports returns the ports of a service that the paths through one of them, or
// all if it is 0, tell apart: those for which there is a policy.
func (k *kindWalk) ports(s *gateway.Service, port int32) []int32 {
	all := make([]int32, len(s.Ports))
	for i, p := range s.Ports {
		all[i] = p.Number
	}
	apart := slices.ContainsFunc(k.attached.service, func(a attachment) bool {
		return !a.target.Whole() && slices.ContainsFunc(all, func(n int32) bool { return k.onPort(&a.target, s.Ref(), n) })
	})
	if port != 0 || !apart {
		return []int32{port}
	}
	slices.Sort(all)
	return slices.Compact(all) // TCP and UDP may share a number
}

func (w *walk) fromService(kind int, p gateway.Path) error {
	if p.Route == nil {
		return w.path(kind, p)
	}
	return w.belowRoute(kind, w.kinds[kind].shape.meshEnd, p)
}

// clients returns the namespaces of those whose policies affect only their own
// traffic, on the service or what the route leads to, sorted.
func (w *walk) clients(kind int, r *gateway.Route) []string {
	k := &w.kinds[kind]
	all := k.attached.service
	if r != nil {
		all = slices.Concat(all, k.attached.route)
	}
	if r != nil && k.shape.meshEnd == gateway.LevelBackend {
		for i := range r.Rules {
			for _, b := range r.Rules[i].Backends {
				all = append(all, ofKind(w.attachedTo(b.Object), kind)...)
			}
		}
	}
	var out []string
	for _, a := range all {
		if a.target.Consumer && Exists(w.view, a.target) {
			out = append(out, a.policy.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
