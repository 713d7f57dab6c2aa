package effective

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// plan is a scope resolved in views: the objects through which its paths go, by name, each
// once. One of them need not exist in a view, and has no paths there.
type plan struct {
	view             *snapshot.View // the current one
	objects, virtual orderedSet[api.Ref]
	all              bool // it has all paths
	// together are the policies with an effect on all of their targets or on none, whose
	// targets were added in the current view.
	together map[*policykind.Policy]bool
}

// plan resolves a scope in views, one after the other. Its cost depends only on what is under
// the objects of the scope.
func (s Scope) plan(views ...*snapshot.View) *plan {
	p := &plan{}
	for _, p.view = range views {
		p.together = nil
		p.addScope(s)
	}
	return p
}

func (p *plan) addScope(s Scope) {
	if s.All {
		p.addAll()
		return
	}
	for _, ref := range s.Objects {
		p.addObject(ref)
	}
	for _, ref := range s.Roots {
		p.objects.add(ref)
	}
	for _, ref := range s.Virtual {
		p.virtual.add(ref)
	}
	for _, policy := range s.Policies {
		p.addTargets(policy)
	}
	for _, g := range s.Grants {
		p.addGrant(g)
	}
}

func (p *plan) addAll() {
	p.all = true
	for g := range p.view.Gateways() {
		p.objects.add(g.Ref())
	}
	for o := range p.view.Objects(api.PolicyKind{Kind: gateway.KindService}) {
		p.objects.add(o.Ref())
	}
	for _, ref := range virtualTargets(p.view) {
		p.virtual.add(ref)
	}
}

// addTargets adds the targets of a policy, and the backends to which it refers.
func (p *plan) addTargets(policy *policykind.Policy) {
	for _, t := range p.view.Targets(policy) {
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

// addObject adds an object, and those whose paths change with its own. If it does not exist,
// the routes that refer to it are added: they may refer to objects of unsupported kinds.
func (p *plan) addObject(ref api.Ref) {
	p.objects.add(ref)
	switch ref.PolicyKind() {
	case api.PolicyKind{Kind: gateway.KindMesh}:
		p.addAll()
	case api.PolicyKind{Kind: gateway.KindNamespace}:
		p.addNamespace(ref.Name)
		p.addVirtual(ref)
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}:
		for g := range p.view.GatewaysOf(ref.Name) {
			p.addObject(g.Ref())
		}
	case gateway.KindOf(gateway.KindListenerSet), gateway.KindOf(gateway.KindXListenerSet):
		p.addRoutes(p.view.RoutesOf(ref))
	default:
		p.addRoutes(p.view.RoutesTo(ref))
		for range p.view.Naming(ref) {
			p.virtual.add(ref)
		}
		if slices.ContainsFunc(p.view.Populated(), func(k *policykind.Kind) bool { return k.ReadsObjects(ref.PolicyKind()) }) {
			p.virtual.add(ref)
		}
	}
	switch o := p.view.Get(ref).(type) {
	case *gateway.Gateway:
		p.addServicesOf(o)
	case *gateway.ListenerSet:
		if portsMatter(p.view) {
			p.addObject((&gateway.Gateway{Namespace: o.GatewayNamespace, Name: o.GatewayName}).Ref())
		}
	case *gateway.Route:
		if notShared(p.view, api.SharedPath) {
			for r := range sharingPath(p.view, o) {
				p.objects.add(r.Ref())
				p.addTogether(r.Ref())
			}
		}
	}
	p.addTogether(ref)
}

func (p *plan) addRoutes(routes iter.Seq[*gateway.Route]) {
	for r := range routes {
		p.objects.add(r.Ref())
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

// addNamespace adds the objects of a namespace.
func (p *plan) addNamespace(name string) {
	var kinds []api.PolicyKind
	for _, kind := range gateway.GatewayKinds {
		kinds = append(kinds, gateway.KindOf(kind))
	}
	for _, kind := range append(kinds, api.PolicyKind{Kind: gateway.KindService}) {
		for o := range p.view.In(kind, name) {
			p.addObject(o.Ref())
		}
	}
}

// addGrant adds what depends on a ReferenceGrant: the targets of policies that need it, and
// the routes with a backend in its namespace.
func (p *plan) addGrant(g *gateway.Grant) {
	for policy := range p.view.DependingOn(g) {
		for _, t := range p.view.Targets(policy) {
			if t.Grant && (t.Ref.Namespace == g.Namespace || t.AttachedBy != "") && t.Selector == nil {
				p.addObject(t.Ref)
			}
		}
	}
	for _, to := range g.To {
		for r := range p.view.BackendsIn(api.PolicyKind{Group: to.Group, Kind: to.Kind}, g.Namespace) {
			if r.Namespace != g.Namespace {
				p.objects.add(r.Ref())
			}
		}
	}
}

// addTogether adds the other targets of policies on an object that have an effect on all of
// their targets or on none.
func (p *plan) addTogether(object api.Ref) {
	if !slices.ContainsFunc(p.view.Populated(), isTogether) {
		return
	}
	for policy := range p.view.On(object) {
		if isTogether(policy.Kind) && !p.together[policy] {
			if p.together == nil {
				p.together = make(map[*policykind.Policy]bool)
			}
			p.together[policy] = true
			p.addTargets(policy)
		}
	}
}

func isTogether(k *policykind.Kind) bool {
	return k.Targets.AllOrNone || slices.Contains(k.Targets.NotShared, api.SharedPath)
}

// virtualTargets returns the virtual targets of policies, all objects of their kinds that are
// read, and the backends that policies refer to.
func virtualTargets(v *snapshot.View) []api.Ref {
	var out orderedSet[api.Ref]
	for _, k := range v.Populated() {
		virtual := false
		for _, t := range k.Targets.Kinds {
			virtual = virtual || t.Virtual
			if t.Virtual && t.Objects {
				for o := range v.Objects(api.PolicyKind{Group: t.Group, Kind: t.Kind}) {
					out.add(o.Ref())
				}
			}
		}
		if !virtual {
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
				p.objects.add(s.Ref())
			}
		}
	}
}

// sharingPath yields the routes that share a path of a route on a hostname of a gateway.
func sharingPath(v *snapshot.View, r *gateway.Route) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for _, at := range rootsOf(v, r) {
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
