package effective

import (
	"iter"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Footprint is the set of objects on which a change and its effects depend. Two changes
// can affect the same path only if their footprints overlap. The reverse does not hold:
// footprints may overlap without need.
type Footprint struct {
	// touched are the objects whose paths change, and references that stand for many:
	// the grants of a namespace (grantsOf), the objects of a kind from which a selector
	// selects (anyOf), all (anything).
	touched map[api.Ref]bool
	// related are the other objects that such paths go through or depend on, above and
	// below. What is under a root is not listed: it has the root as a related object.
	related map[api.Ref]bool
	// links and selects are set for all changes of an object for which the functions of
	// these names hold.
	links, selects bool
}

// anything stands for all objects. Every footprint has it.
var anything = api.Ref{Kind: "*"}

func newFootprint() *Footprint {
	return &Footprint{touched: make(map[api.Ref]bool), related: map[api.Ref]bool{anything: true}}
}

// Everywhere returns the footprint of a change that can affect any path.
func Everywhere() *Footprint {
	f := newFootprint()
	f.touched[anything] = true
	return f
}

// FootprintOf returns the footprint of a change, given the object before and after it: what
// the object names, the plan of its scope, and all that the paths of that depend on. These are
// looked up in the views: those before and after, with and without other changes.
func FootprintOf(objects []snapshot.Object, views ...*snapshot.View) *Footprint {
	f := newFootprint()
	for _, o := range objects {
		f.addNames(o)
	}
	if f.All() {
		return f
	}
	plan := ScopeOf(objects...).plan(views...)
	if plan.all {
		f.touched[anything] = true
		return f
	}
	names := slices.Concat(plan.objects.list, plan.virtual.list)
	for _, ref := range names {
		f.touched[ref] = true
	}
	reroutes := reroutesRequests(objects)
	for _, v := range views {
		t := tracer{f, v, make(map[api.Ref]bool)}
		for _, ref := range names {
			t.relate(ref)
		}
		for _, o := range objects {
			t.relateChange(o, names, reroutes)
		}
	}
	for ref := range f.touched {
		delete(f.related, ref)
	}
	return f
}

// reroutesRequests reports whether a change of a route, given before and after, may move
// requests to or from other routes.
func reroutesRequests(objects []snapshot.Object) bool {
	var routes []*gateway.Route
	for _, o := range objects {
		if r, ok := o.(*gateway.Route); ok {
			routes = append(routes, r)
		}
	}
	return len(routes) != 2 || !routes[0].SameRequests(routes[1])
}

// addHostnames adds the hostnames of a route at its gateways: the own ones as touched,
// and the less specific ones, of which it may take requests, as related. At a listener set
// that is not there, any hostname is touched.
func (t tracer) addHostnames(r *gateway.Route) {
	for _, p := range r.Parents {
		set, found := t.view.Get(p.Ref()).(*gateway.ListenerSet)
		switch {
		case found: // its gateway need not be there yet
			p.Namespace, p.Name = set.GatewayNamespace, set.GatewayName
		case p.Kind == gateway.KindService:
			continue
		case p.Kind != gateway.KindGateway:
			t.touched[hostnameAt(p.Kind, p.Namespace, p.Name, "")] = true
			continue
		}
		for _, chain := range r.HostnameChains() {
			t.touched[hostnameAt(gateway.KindGateway, p.Namespace, p.Name, chain[0])] = true
			for _, h := range chain[1:] {
				t.related[hostnameAt(gateway.KindGateway, p.Namespace, p.Name, h)] = true
			}
			for _, h := range chain {
				t.touched[withinHostnameAt(p, h)] = true
			}
		}
	}
}

// relateRequests adds the hostnames of a route as related, whose requests routes with such
// hostnames, or more specific ones, may give it.
func (t tracer) relateRequests(r *gateway.Route) {
	for _, p := range r.Parents {
		if set, ok := t.view.Get(p.Ref()).(*gateway.ListenerSet); ok {
			p.Namespace, p.Name = set.GatewayNamespace, set.GatewayName
		}
		for _, chain := range r.HostnameChains() {
			t.related[withinHostnameAt(p, chain[0])] = true
			for _, h := range chain {
				t.related[hostnameAt(gateway.KindGateway, p.Namespace, p.Name, h)] = true
			}
		}
	}
}

// withinHostnameAt stands for requests for a hostname at a gateway, or a more specific one.
func withinHostnameAt(p gateway.Parent, hostname string) api.Ref {
	return hostnameAt("Within", p.Namespace, p.Name, hostname)
}

// hostnameAt stands for the requests for a hostname at a gateway or listener set.
func hostnameAt(kind, namespace, name, hostname string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: kind + " hostname", Namespace: namespace + "/" + name, Name: hostname}
}

// All reports whether the change can affect any path.
func (f *Footprint) All() bool { return f.touched[anything] }

// Links reports whether the change extends the footprints of others (Links).
func (f *Footprint) Links() bool { return f.links && !f.All() }

// Selects reports whether other changes decide what the change applies to: it is one of a
// ReferenceGrant, or of a policy with a selector.
func (f *Footprint) Selects() bool { return f.selects }

// Len returns the number of references in the footprint.
func (f *Footprint) Len() int { return len(f.touched) + len(f.related) }

// Touched yields the objects whose paths change, in no order.
func (f *Footprint) Touched() iter.Seq[api.Ref] { return maps.Keys(f.touched) }

// Related yields the other objects that such paths go through or depend on, in no order.
func (f *Footprint) Related() iter.Seq[api.Ref] { return maps.Keys(f.related) }

// Join adds another footprint of the same change, in another view.
func (f *Footprint) Join(o *Footprint) {
	maps.Copy(f.touched, o.touched)
	maps.Copy(f.related, o.related)
}

func selects(o snapshot.Object) bool {
	switch o := o.(type) {
	case *gateway.Grant:
		return true
	case *policykind.Policy:
		return slices.ContainsFunc(o.Targets, func(t policykind.Target) bool { return t.Selector != nil })
	default:
		return false
	}
}

// Links reports whether paths can go through an object, so that a change of it extends
// other footprints. They never go through a policy.
func Links(o snapshot.Object) bool {
	_, policy := o.(*policykind.Policy)
	return !policy
}

// Through returns a function that reports whether the plan of the change has a path. It ignores
// groups, which path elements do not have.
func (f *Footprint) Through() func(path []api.PathElement) bool {
	type place struct{ kind, namespace, name string }
	touched := make(map[place]bool, len(f.touched))
	for ref := range f.touched {
		touched[place{ref.Kind, ref.Namespace, ref.Name}] = true
	}
	return func(path []api.PathElement) bool {
		if i := slices.IndexFunc(path, func(e api.PathElement) bool { return gateway.IsRoute(gateway.KindOf(e.Kind)) }); i >= 0 {
			path = path[:i+1] // the plan has the paths to a backend by their routes
		}
		return f.All() || slices.ContainsFunc(path, func(e api.PathElement) bool { return touched[place{e.Kind, e.Namespace, e.Name}] })
	}
}

// grantsOf stands for the ReferenceGrants of a namespace, or of any.
func grantsOf(namespace string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant, Namespace: namespace}
}

// anyOf stands for all objects of a kind in a namespace, or in any.
func anyOf(kind api.PolicyKind, namespace string) api.Ref {
	return api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: namespace}
}

// addNames adds what the object of a change names, whatever exists.
func (f *Footprint) addNames(o snapshot.Object) {
	if o == nil {
		return
	}
	f.links, f.selects = f.links || Links(o), f.selects || selects(o)
	switch o := o.(type) {
	case *policykind.Profile, *policykind.Definition, *constraint.Constraint:
		f.touched[anything] = true
	case *policykind.Policy:
		f.addPolicy(o)
	case *gateway.Grant:
		f.touched[grantsOf(o.Namespace)], f.related[grantsOf("")] = true, true
		f.related[(&gateway.Namespace{Name: o.Namespace}).Ref()] = true // the footprint of the namespace has the grant as related
	case *gateway.ListenerSet:
		f.touched[hostnameAt(gateway.KindGateway, o.GatewayNamespace, o.GatewayName, "")] = true
		f.related[hostnameAt(o.Ref().Kind, o.Namespace, o.Name, "")] = true
	}
}

func (f *Footprint) addPolicy(p *policykind.Policy) {
	f.touched[p.Ref()] = true
	for _, target := range p.Targets {
		if target.Selector != nil {
			f.touched[anyOf(target.Ref.PolicyKind(), target.Ref.Namespace)] = true
		}
		switch {
		case !target.Grant:
		case target.Ref.Namespace == "":
			f.touched[grantsOf("")] = true // any grant can add targets to a selector
		default:
			f.related[grantsOf(target.Ref.Namespace)] = true
		}
	}
}

// tracer adds the objects of one view to a footprint.
type tracer struct {
	*Footprint
	view *snapshot.View
	seen map[api.Ref]bool // by relate
}

// relateChange adds what a change of an object depends on, given the names in the plan of its
// scope.
func (t tracer) relateChange(o snapshot.Object, names []api.Ref, reroutes bool) {
	switch o := o.(type) {
	case nil, *gateway.Grant:
		return
	case *policykind.Policy:
		if !o.HasOverrides() {
			return
		}
		for _, ref := range names {
			if r := routeAt(t.view, ref); r != nil {
				t.relateRequests(r)
			}
		}
		return
	case *gateway.Route:
		if reroutes {
			t.addHostnames(o)
		}
	case *gateway.Gateway:
		t.relateOtherParents(root{gateway: o}.routes(t.view))
	case *gateway.ListenerSet:
		t.relateOtherParents(t.view.RoutesOf(o.Ref()))
	}
	t.relateDependencies(o)
}

// relateOtherParents adds as related where else the routes of a gateway or listener set are:
// clients may follow their service there.
func (t tracer) relateOtherParents(routes iter.Seq[*gateway.Route]) {
	for r := range routes {
		for _, p := range r.Parents {
			t.relate(p.Ref())
		}
	}
}

// relate adds an object as related, what can select it, and what it depends on.
func (t tracer) relate(ref api.Ref) {
	if t.seen[ref] {
		return
	}
	t.seen[ref], t.related[ref] = true, true
	if o := t.view.Get(ref); o != nil {
		t.relateDependencies(o)
	} else {
		t.relateSelectors(ref)
	}
}

// relateDependencies adds the dependencies of an object as related: its namespace, what
// it refers to, and the dependencies of these.
func (t tracer) relateDependencies(o snapshot.Object) {
	t.relateSelectors(o.Ref())
	for policy, target := range t.view.References(o) {
		t.related[policy] = true
		if target.Grant {
			t.related[grantsOf(policy.Namespace)] = true
		}
	}
	switch o := o.(type) {
	case *gateway.Gateway:
		t.related[(&gateway.Class{Name: o.Class}).Ref()] = true
		t.related[anyOf((&gateway.Class{}).Ref().PolicyKind(), "")] = true
	case *gateway.ListenerSet:
		t.relate((&gateway.Gateway{Namespace: o.GatewayNamespace, Name: o.GatewayName}).Ref())
	case *gateway.Service:
		for _, w := range waypointsOf(t.view) {
			if namespace, name, ok := waypointName(t.view, w, o); ok {
				t.relate((&gateway.Gateway{Namespace: namespace, Name: name}).Ref())
			}
		}
	case *gateway.Route:
		for _, p := range o.Parents {
			t.relate(p.Ref())
		}
		for i := range o.Rules {
			for _, b := range o.Rules[i].Backends {
				t.relate(b.Object)
				if b.Object.Namespace != o.Namespace {
					t.related[grantsOf(b.Object.Namespace)] = true
				}
			}
		}
	}
}

// relateSelectors adds as related what can select an object: its namespace and
// selectors of its kind.
func (t tracer) relateSelectors(ref api.Ref) {
	kind := ref.PolicyKind()
	t.related[anyOf(kind, "")] = true
	if ref.Namespace != "" {
		t.related[anyOf(kind, ref.Namespace)] = true
		t.related[(&gateway.Namespace{Name: ref.Namespace}).Ref()] = true
	}
	if kind == (api.PolicyKind{Kind: gateway.KindNamespace}) { // its paths depend on the grants in it
		t.related[grantsOf(ref.Name)], t.related[grantsOf("")] = true, true
	}
}
