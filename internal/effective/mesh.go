package effective

import (
	"slices"

	"overrule.dev/overrule/internal/gateway"
)

// servicePath visits the paths that end at the service that is the root.
func (w *walk) servicePath() error {
	for i := range w.kinds {
		k := &w.kinds[i]
		if !k.shape.mesh || k.shape.meshEnd != gateway.LevelService {
			continue
		}
		if err := k.servicePaths(gateway.Path{Gateway: k.waypoint, Service: w.root.service, Rule: -1}, 0); err != nil {
			return err
		}
	}
	return nil
}

// meshRoute visits the paths from a service through a route that has it as a parent. A
// route in the namespace of the service is a producer route; one in another namespace
// is a consumer route, and applies only to clients in that namespace.
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
			if err := k.servicePaths(p, port); err != nil {
				return err
			}
		}
	}
	return nil
}

// servicePaths visits the paths from a service on: one for each port if the route or a
// policy targets single ports, and one for each namespace of clients with a policy of
// its own.
func (k *kindWalk) servicePaths(p gateway.Path, port int32) error {
	clients := k.clientsAt(&p)
	for _, p.Port = range k.ports(p.Service, port) {
		for _, p.Client = range clients {
			if err := k.fromService(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// ports returns the ports of the paths through a service, where port 0 stands for all
// ports: each port by itself if some policy targets a single one.
func (k *kindWalk) ports(s *gateway.Service, port int32) []int32 {
	all := make([]int32, len(s.Ports))
	for i, p := range s.Ports {
		all[i] = p.Number
	}
	split := slices.ContainsFunc(k.on[gateway.LevelService], func(a attachment) bool {
		return !a.target.Whole() && slices.ContainsFunc(all, func(n int32) bool { return onPort(k.view, k.unread.numbers, &a.target, s.Ref(), n) })
	})
	if port != 0 || !split {
		return []int32{port}
	}
	slices.Sort(all)
	return slices.Compact(all) // a TCP and a UDP port can have the same number
}

func (k *kindWalk) fromService(p gateway.Path) error {
	if p.Route == nil {
		return k.path(p)
	}
	return k.belowRoute(k.shape.meshEnd, p)
}

// clientsAt returns the client of a path, and those whose paths are part of it.
func (k *kindWalk) clientsAt(p *gateway.Path) []string {
	if p.Service == nil || p.Client != "" {
		return []string{p.Client}
	}
	return append([]string{""}, k.clients(p.Route)...)
}

// clients returns the namespaces with policies that affect only their own clients, on
// the service, the route or its backends, sorted.
func (k *kindWalk) clients(r *gateway.Route) []string {
	all := k.on[gateway.LevelService]
	if r != nil {
		all = slices.Concat(all, k.on[gateway.LevelRoute])
	}
	if r != nil && k.shape.meshEnd == gateway.LevelBackend {
		for i := range r.Rules {
			for _, b := range r.Rules[i].Backends {
				all = append(all, k.attached(b.Object)...)
			}
		}
	}
	var out []string
	for _, a := range all {
		if a.target.Consumer && Exists(k.view, k.kind, a.target) {
			out = append(out, a.policy.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
