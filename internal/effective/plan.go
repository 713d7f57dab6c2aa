package effective

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// plan is a scope resolved in a view: each root and route once.
type plan struct {
	view    *snapshot.View
	roots   orderedSet[root]
	sets    orderedSet[*gateway.ListenerSet]
	routes  orderedSet[*gateway.Route]
	virtual orderedSet[api.Ref]
	seen    together
}

// plan resolves a scope. Its cost depends only on what is under the objects of the
// scope.
func (s Scope) plan(v *snapshot.View) *plan {
	p := &plan{view: v, seen: make(together)}
	if s.All {
		p.addAll()
		return p
	}
	for _, ref := range s.Objects {
		p.addObject(ref)
	}
	for _, ref := range s.Roots {
		p.addExisting(v.Get(ref))
	}
	for _, ref := range s.Virtual {
		p.virtual.add(ref)
	}
	for _, policy := range s.Policies {
		for _, t := range v.Targets(policy) {
			if t.Virtual {
				p.addVirtual(t.Ref)
			}
			if t.Selector == nil {
				p.addObject(t.Ref)
			}
		}
		for _, b := range policy.Backends {
			p.virtual.add(b.Object)
		}
	}
	for _, g := range s.Grants {
		p.addGrant(g)
	}
	return p
}

func (p *plan) addAll() {
	for g := range p.view.Gateways() {
		p.roots.add(root{gateway: g})
	}
	for o := range p.view.Objects(api.PolicyKind{Kind: gateway.KindService}) {
		if s, ok := o.(*gateway.Service); ok {
			p.roots.add(root{service: s})
		}
	}
	for _, ref := range virtualTargets(p.view) {
		p.virtual.add(ref)
	}
}

// addObject adds the paths through an object. If it does not exist, those of the routes
// that refer to it are added: a change is resolved in the views before and after it,
// and routes may refer to objects of unsupported kinds.
func (p *plan) addObject(ref api.Ref) {
	switch ref.PolicyKind() {
	case api.PolicyKind{Kind: gateway.KindMesh}:
		p.addAll()
	case api.PolicyKind{Kind: gateway.KindNamespace}:
		p.addNamespace(ref.Name)
		p.addVirtual(ref)
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}:
		for g := range p.view.GatewaysOf(ref.Name) {
			p.roots.add(root{gateway: g})
			p.addServicesOf(g)
		}
	case gateway.KindOf(gateway.KindListenerSet), gateway.KindOf(gateway.KindXListenerSet):
		for r := range p.view.RoutesOf(ref) {
			p.routes.add(r)
		}
	default:
		p.addRoutesTo(ref)
		for range p.view.Naming(ref) {
			p.virtual.add(ref)
		}
	}
	o := p.view.Get(ref)
	if g, ok := o.(*gateway.Gateway); ok {
		p.addServicesOf(g)
	}
	p.addExisting(o)
	for other := range p.seen.from(p.view, ref) {
		p.addObject(other)
	}
}

// addVirtual adds a virtual target. In a virtual namespace, it adds those in it.
func (p *plan) addVirtual(ref api.Ref) {
	p.virtual.add(ref)
	if ref.PolicyKind() != (api.PolicyKind{Kind: gateway.KindNamespace}) {
		return
	}
	for _, in := range virtualTargets(p.view) {
		if in.Namespace == ref.Name {
			p.virtual.add(in)
		}
	}
}

// addExisting adds an object, nil for none.
func (p *plan) addExisting(object snapshot.Object) {
	switch o := object.(type) {
	case *gateway.Gateway:
		p.roots.add(root{gateway: o})
	case *gateway.ListenerSet:
		p.sets.add(o)
		if portsMatter(p.view) && !p.gatewayOf(o).isZero() {
			p.roots.add(p.gatewayOf(o))
		}
	case *gateway.Route:
		p.routes.add(o)
		if notShared(p.view, api.SharedPath) {
			for r := range sharingPath(p.view, o) {
				p.routes.add(r)
				for other := range p.seen.from(p.view, r.Ref()) {
					p.addObject(other)
				}
			}
		}
	case *gateway.Service:
		p.roots.add(root{service: o})
	}
}

func (p *plan) addRoutesTo(ref api.Ref) {
	for r := range p.view.RoutesTo(ref) {
		p.routes.add(r)
	}
}

// addNamespace adds the paths through the gateways, listener sets, services and routes
// of a namespace.
func (p *plan) addNamespace(name string) {
	for _, kind := range []string{gateway.KindGateway, gateway.KindListenerSet, gateway.KindXListenerSet} {
		for o := range p.view.In(gateway.KindOf(kind), name) {
			p.addObject(o.Ref())
		}
	}
	for o := range p.view.In(api.PolicyKind{Kind: gateway.KindService}, name) {
		p.addObject(o.Ref())
	}
	for _, kind := range gateway.RouteKinds {
		for o := range p.view.In(api.PolicyKind{Group: api.GatewayGroup, Kind: kind}, name) {
			p.addObject(o.Ref())
		}
	}
}

// addGrant adds the paths that depend on a ReferenceGrant: those of the policies with a
// target in its namespace, and of the routes with a backend there.
func (p *plan) addGrant(g *gateway.Grant) {
	for _, to := range g.To {
		kind := api.PolicyKind{Group: to.Group, Kind: to.Kind}
		for policy := range p.view.TargetsIn(kind, g.Namespace) {
			for _, t := range policy.Targets {
				if t.Grant && t.Ref.Namespace == g.Namespace {
					p.addObject(t.Ref)
				}
			}
		}
		for policy := range p.view.Selecting(kind) {
			for _, t := range p.view.Targets(policy) {
				if t.Grant && t.Ref.Namespace == g.Namespace && t.Selector == nil {
					p.addObject(t.Ref)
				}
			}
		}
		for r := range p.view.BackendsIn(kind, g.Namespace) {
			if r.Namespace != g.Namespace {
				p.routes.add(r)
			}
		}
	}
}

// objects yields the gateways and services, listener sets and routes of the plan.
func (p *plan) objects() iter.Seq[snapshot.Object] {
	return func(yield func(snapshot.Object) bool) {
		for _, r := range p.roots.list {
			if !yield(r.object()) {
				return
			}
		}
		for _, s := range p.sets.list {
			if !yield(s) {
				return
			}
		}
		for _, r := range p.routes.list {
			if !yield(r) {
				return
			}
		}
	}
}

// listeners returns all listeners of a gateway: its own and those of its sets.
func (p *plan) listeners(r root) []gateway.ListenerMatch {
	if r.gateway == nil {
		return nil
	}
	return p.view.Listeners(r.gateway)
}

// setListeners returns the listeners of a set, none if it is not one of the root.
func (p *plan) setListeners(at root, s *gateway.ListenerSet) []gateway.ListenerMatch {
	if at.isZero() || p.gatewayOf(s) != at {
		return nil
	}
	return gateway.SetListeners(at.gateway, s, p.view.NamespaceLabels(s.Namespace))
}

// routesUnder yields the routes that have a root or a listener set of it as a parent,
// each once.
func (p *plan) routesUnder(r root) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for route := range p.view.RoutesOf(r.Ref()) {
			if !yield(route) {
				return
			}
		}
		for route := range p.routesBySets(r) {
			if !yield(route) {
				return
			}
		}
	}
}

// routesBySets yields the routes that have a listener set of a root as a parent, and
// not the root itself, each once.
func (p *plan) routesBySets(r root) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		if r.gateway == nil {
			return
		}
		for s := range p.view.SetsOf(r.gateway) {
			for route := range p.view.RoutesOf(s.Ref()) {
				if p.firstOf(route, r.gateway) == s && !yield(route) {
					return
				}
			}
		}
	}
}

// firstOf returns the first listener set of a gateway that is a parent of a route, nil
// if the gateway itself is one.
func (p *plan) firstOf(r *gateway.Route, g *gateway.Gateway) *gateway.ListenerSet {
	var first *gateway.ListenerSet
	for _, parent := range r.Parents {
		if parent.Is(gateway.KindGateway, g.Namespace, g.Name) {
			return nil
		}
		if s := p.listenerSetAt(parent.Ref()); s != nil && s.GatewayNamespace == g.Namespace && s.GatewayName == g.Name && first == nil {
			first = s
		}
	}
	return first
}

// isUnder reports whether a route has a root or a listener set of it as a parent.
func (p *plan) isUnder(r *gateway.Route, at root) bool {
	switch {
	case at.isZero():
		return false
	case at.service != nil:
		return slices.ContainsFunc(r.Parents, func(parent gateway.Parent) bool {
			return parent.Is(gateway.KindService, at.service.Namespace, at.service.Name)
		})
	default:
		return p.firstOf(r, at.gateway) != nil || slices.ContainsFunc(r.Parents, func(parent gateway.Parent) bool {
			return parent.Is(gateway.KindGateway, at.gateway.Namespace, at.gateway.Name)
		})
	}
}

// gatewayOf returns the gateway of a listener set as a root, zero if the set is nil or
// its gateway does not exist.
func (p *plan) gatewayOf(s *gateway.ListenerSet) root {
	if s == nil {
		return root{}
	}
	return root{gateway: p.view.Gateway(s.GatewayNamespace, s.GatewayName)}
}

// rootsOf returns the gateways and services that a route is under, each once.
func (p *plan) rootsOf(r *gateway.Route) []root {
	if r == nil {
		return nil
	}
	var out orderedSet[root]
	for _, parent := range r.Parents {
		switch parent.Kind {
		case gateway.KindService:
			if at := p.rootAt(parent.Ref()); !at.isZero() {
				out.add(at)
			}
		case gateway.KindListenerSet, gateway.KindXListenerSet:
			if s := p.listenerSetAt(parent.Ref()); s != nil {
				parent.Namespace, parent.Name = s.GatewayNamespace, s.GatewayName
			}
			fallthrough
		default:
			if g := p.view.Gateway(parent.Namespace, parent.Name); g != nil {
				out.add(root{gateway: g})
			}
		}
	}
	return out.list
}

func single[T any](v T) iter.Seq[T] { return func(yield func(T) bool) { yield(v) } }

func (p *plan) rootAt(ref api.Ref) root {
	switch o := p.view.Get(ref).(type) {
	case *gateway.Gateway:
		return root{gateway: o}
	case *gateway.Service:
		return root{service: o}
	default:
		return root{}
	}
}

func (p *plan) listenerSetAt(ref api.Ref) *gateway.ListenerSet {
	s, _ := p.view.Get(ref).(*gateway.ListenerSet)
	return s
}

func (p *plan) routeAt(ref api.Ref) *gateway.Route {
	r, _ := p.view.Get(ref).(*gateway.Route)
	return r
}

// virtualTargets returns the targets of policies for which no objects exist, and the
// backends that policies refer to.
func virtualTargets(v *snapshot.View) []api.Ref {
	var out orderedSet[api.Ref]
	for _, k := range v.Kinds() {
		if !hasVirtual(k) {
			continue
		}
		for policy := range v.Policies(k.Ref()) {
			for _, t := range v.Targets(policy) {
				if t.Virtual {
					out.add(t.Ref)
				}
			}
		}
	}
	for ref := range v.Named() {
		out.add(ref)
	}
	return out.list
}

func hasVirtual(k *policykind.Kind) bool {
	for _, t := range k.Targets.Kinds {
		if t.Virtual {
			return true
		}
	}
	return false
}

// addServicesOf adds the services that have a gateway as their waypoint.
func (p *plan) addServicesOf(g *gateway.Gateway) {
	for _, w := range waypointsOf(p.view) {
		services := p.view.In(api.PolicyKind{Kind: gateway.KindService}, g.Namespace)
		if waypointListener(w, g) != nil {
			services = p.view.Objects(api.PolicyKind{Kind: gateway.KindService})
		}
		for o := range services {
			s, ok := o.(*gateway.Service)
			if namespace, name, named := waypointName(p.view, w, s); ok && named && namespace == g.Namespace && name == g.Name {
				p.roots.add(root{service: s})
			}
		}
	}
}

// sharingPath yields the routes that share a path of a route on a hostname of a gateway.
func sharingPath(v *snapshot.View, r *gateway.Route) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for _, at := range (&plan{view: v}).rootsOf(r) {
			if at.gateway == nil {
				continue
			}
			for o := range v.Router(at.gateway, gateway.Reading{}).SharingPath(r) {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// portsMatter reports whether the policies on a listener depend on others on its port, in some
// kind with policies.
func portsMatter(v *snapshot.View) bool {
	return notShared(v, api.SharedPort) || slices.ContainsFunc(v.Populated(), func(k *policykind.Kind) bool {
		return slices.Contains(k.Targets.Listeners, api.ListenerFirst)
	})
}

// notShared reports whether some kind with policies must not share something.
func notShared(v *snapshot.View, part api.SharedPart) bool {
	return slices.ContainsFunc(v.Populated(), func(k *policykind.Kind) bool { return slices.Contains(k.Targets.NotShared, part) })
}

// together are policies that have an effect on all of their targets or on none, and whose
// other targets were looked up.
type together map[*policykind.Policy]bool

// from yields the targets of such policies on an object, of each policy once.
func (seen together) from(v *snapshot.View, object api.Ref) iter.Seq[api.Ref] {
	return func(yield func(api.Ref) bool) {
		if !slices.ContainsFunc(v.Populated(), isTogether) {
			return
		}
		for p := range v.On(object) {
			if !isTogether(p.Kind) || seen[p] {
				continue
			}
			seen[p] = true
			for _, t := range v.Targets(p) {
				if t.Selector == nil && !yield(t.Ref) {
					return
				}
			}
		}
	}
}

func isTogether(k *policykind.Kind) bool {
	return k.Targets.AllOrNone || slices.Contains(k.Targets.NotShared, api.SharedPath)
}
