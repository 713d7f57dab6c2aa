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
	all bool
	// touched are the objects whose paths change, and references that stand for many:
	// the grants of a namespace (grantsOf), the objects of a kind from which a selector
	// selects (anyOf).
	touched map[api.Ref]bool
	// related are the other objects that such paths go through or depend on, above and
	// below. What is under a root is not listed: it has the root as a related object.
	related map[api.Ref]bool
}

// Everywhere returns the footprint of a change that can affect any path.
func Everywhere() *Footprint { return &Footprint{all: true} }

// FootprintOf returns the footprint of a change, given the object before and after it.
// Related objects are looked up in the views: those before and after, with and without
// other changes.
func FootprintOf(objects []snapshot.Object, views ...*snapshot.View) *Footprint {
	f := &Footprint{touched: make(map[api.Ref]bool), related: make(map[api.Ref]bool)}
	reroutes := reroutesRequests(objects)
	for _, v := range views {
		t := tracer{f, v, make(together)}
		for _, o := range objects {
			if o == nil {
				continue
			}
			t.addChange(o)
			switch o := o.(type) {
			case *gateway.Route:
				if reroutes {
					t.addHostnames(o)
				}
			case *gateway.ListenerSet:
				t.touched[hostnameAt(gateway.KindGateway, o.GatewayNamespace, o.GatewayName, "")] = true
				t.related[hostnameAt(o.Ref().Kind, o.Namespace, o.Name, "")] = true
			}
		}
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
		g := t.view.GatewayOf(p)
		switch {
		case g != nil:
			p.Namespace, p.Name = g.Namespace, g.Name
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
		}
	}
}

// hostnameAt stands for the requests for a hostname at a gateway or listener set.
func hostnameAt(kind, namespace, name, hostname string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: kind + " hostname", Namespace: namespace + "/" + name, Name: hostname}
}

// Overlaps reports whether two changes can affect the same path.
func (f *Footprint) Overlaps(o *Footprint) bool {
	return f.all || o.all || intersect(f.touched, o.touched) || intersect(f.touched, o.related) || intersect(f.related, o.touched)
}

// All reports whether the change can affect any path.
func (f *Footprint) All() bool { return f.all }

// Len returns the number of references in the footprint.
func (f *Footprint) Len() int { return len(f.touched) + len(f.related) }

// Touched yields the objects whose paths change, in no order.
func (f *Footprint) Touched() iter.Seq[api.Ref] { return maps.Keys(f.touched) }

// Related yields the other objects that such paths go through or depend on, in no order.
func (f *Footprint) Related() iter.Seq[api.Ref] { return maps.Keys(f.related) }

// Clone returns a copy of the footprint.
func (f *Footprint) Clone() *Footprint {
	return &Footprint{f.all, maps.Clone(f.touched), maps.Clone(f.related)}
}

// AddRelated adds everything in another footprint to the related objects.
func (f *Footprint) AddRelated(o *Footprint) {
	maps.Copy(f.related, o.touched)
	maps.Copy(f.related, o.related)
}

// AddTouched adds everything in another footprint to the touched objects.
func (f *Footprint) AddTouched(o *Footprint) {
	maps.Copy(f.touched, o.touched)
	maps.Copy(f.touched, o.related)
}

// Join adds another footprint of the same change, in another view.
func (f *Footprint) Join(o *Footprint) {
	f.all = f.all || o.all
	maps.Copy(f.touched, o.touched)
	maps.Copy(f.related, o.related)
}

// Growth is how other changes extend the footprint of a change.
type Growth int

// The growths.
const (
	// GrowsRelated has changes of objects of paths extend the related objects.
	GrowsRelated Growth = iota
	// GrowsTouched has all changes extend the touched objects: what a ReferenceGrant
	// and a label selector apply to depends on other objects.
	GrowsTouched
)

// GrowthOf returns the growth of a change, given the object before and after it.
func GrowthOf(objects ...snapshot.Object) Growth {
	for _, o := range objects {
		switch o := o.(type) {
		case *gateway.Grant:
			if o != nil {
				return GrowsTouched
			}
		case *policykind.Policy:
			if o != nil && slices.ContainsFunc(o.Targets, func(t policykind.Target) bool { return t.Selector != nil }) {
				return GrowsTouched
			}
		}
	}
	return GrowsRelated
}

// Links reports whether paths can go through an object, so that a change of it extends
// other footprints. They never go through a policy.
func Links(o snapshot.Object) bool {
	_, policy := o.(*policykind.Policy)
	return !policy
}

// RoutesOnly returns the routes of all paths that a change affects, given the object
// before and after it: for a route, and for a policy that only targets routes. Two such
// changes without a common route do not overlap, and no view is needed to decide this.
// ok is false for other changes.
func RoutesOnly(objects ...snapshot.Object) (routes []api.Ref, ok bool) {
	for _, o := range objects {
		switch o := o.(type) {
		case nil:
		case *gateway.Route:
			routes = append(routes, o.Ref())
		case *policykind.Policy:
			if o.Kind.Attaches() || len(o.Backends) > 0 || isTogether(o.Kind) {
				return nil, false
			}
			for i := range o.Targets {
				t := &o.Targets[i]
				if t.Selector != nil || !gateway.IsRoute(t.Ref.PolicyKind()) {
					return nil, false
				}
				routes = append(routes, t.Ref)
			}
		default:
			return nil, false
		}
	}
	return routes, true
}

// Through returns a function that reports whether a path goes through a touched object.
// It ignores groups, which path elements do not have.
func (f *Footprint) Through() func(path []api.PathElement) bool {
	type place struct{ kind, namespace, name string }
	touched := make(map[place]bool, len(f.touched))
	for ref := range f.touched {
		touched[place{ref.Kind, ref.Namespace, ref.Name}] = true
	}
	return func(path []api.PathElement) bool {
		return f.all || slices.ContainsFunc(path, func(e api.PathElement) bool {
			return touched[place{e.Kind, e.Namespace, e.Name}] || touched[place{gateway.KindNamespace, "", e.Namespace}]
		})
	}
}

func intersect(a, b map[api.Ref]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for ref := range a {
		if b[ref] {
			return true
		}
	}
	return false
}

// grantsOf stands for the ReferenceGrants of a namespace, or of any.
func grantsOf(namespace string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant, Namespace: namespace}
}

// anyOf stands for all objects of a kind in a namespace, or in any.
func anyOf(kind api.PolicyKind, namespace string) api.Ref {
	return api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: namespace}
}

// tracer adds the objects of one view to a footprint.
type tracer struct {
	*Footprint
	view *snapshot.View
	seen together
}

func (t tracer) addChange(o snapshot.Object) {
	switch o := o.(type) {
	case *policykind.Profile, *policykind.Definition, *constraint.Constraint:
		t.all = true
	case *policykind.Policy:
		t.touchPolicy(o)
	case *gateway.Grant:
		t.touchGrant(o)
	default:
		t.touchObject(o.Ref())
		if r, ok := o.(*gateway.Route); ok && notShared(t.view, api.SharedPath) {
			for other := range sharingPath(t.view, r) {
				t.touchObject(other.Ref())
			}
		}
		t.relateDependencies(o)
	}
}

func (t tracer) touchPolicy(p *policykind.Policy) {
	t.touched[p.Ref()] = true
	for _, target := range p.Targets {
		if target.Selector != nil {
			t.touched[anyOf(target.Ref.PolicyKind(), target.Ref.Namespace)] = true
		}
		switch {
		case !target.Grant:
		case target.Ref.Namespace == "":
			t.touched[grantsOf("")] = true // any grant can add targets to a selector
		default:
			t.related[grantsOf(target.Ref.Namespace)] = true
		}
	}
	for _, target := range t.view.Targets(p) {
		if target.Selector == nil {
			t.touchObject(target.Ref)
		}
	}
	for _, b := range p.Backends {
		t.touchObject(b.Object)
	}
}

// touchGrant touches everything that can depend on a grant.
func (t tracer) touchGrant(g *gateway.Grant) {
	t.touched[grantsOf(g.Namespace)], t.related[grantsOf("")] = true, true
	t.related[(&gateway.Namespace{Name: g.Namespace}).Ref()] = true // the footprint of the namespace has the grant as related
	p := plan{view: t.view, seen: make(together)}
	p.addGrant(g)
	for _, r := range p.routes.list {
		t.touchObject(r.Ref())
	}
	for _, r := range p.roots.list {
		if r.gateway != nil {
			t.touchObject(r.gateway.Ref())
		} else {
			t.touchObject(r.service.Ref())
		}
	}
	for _, s := range p.sets.list {
		t.touchObject(s.Ref())
	}
}

// touchObject touches an object, which need not exist.
func (t tracer) touchObject(ref api.Ref) {
	t.touched[ref] = true
	switch ref.PolicyKind() {
	case api.PolicyKind{Kind: gateway.KindMesh}:
		t.all = true
	case api.PolicyKind{Kind: gateway.KindNamespace}:
		t.relateNamespace(ref.Name)
	default:
		for r := range t.view.RoutesTo(ref) { // the route has the backend as related
			t.relateDependencies(r)
		}
	}
	t.relateSelectors(ref)
	if o := t.view.Get(ref); o != nil {
		t.relateDependencies(o)
	}
	if g := (&plan{view: t.view}).gatewayOf((&plan{view: t.view}).listenerSetAt(ref)); !g.isZero() && portsMatter(t.view) {
		t.touched[g.ref()] = true
	}
	for other := range t.seen.from(t.view, ref) {
		t.touchObject(other)
	}
}

// relateNamespace adds everything in a namespace and its dependencies as related.
func (t tracer) relateNamespace(name string) {
	hold := func(kind api.PolicyKind) {
		for o := range t.view.In(kind, name) {
			t.related[o.Ref()] = true
			t.relateDependencies(o)
		}
	}
	hold(api.PolicyKind{Kind: gateway.KindService})
	for _, kind := range gateway.GatewayKinds {
		hold(gateway.KindOf(kind))
	}
}

// relateDependencies adds the dependencies of an object as related: its namespace, what
// it refers to, and the dependencies of these.
func (t tracer) relateDependencies(o snapshot.Object) {
	t.relateSelectors(o.Ref())
	for policy := range t.view.References(o) {
		t.related[policy] = true
	}
	switch o := o.(type) {
	case *gateway.Gateway:
		t.related[(&gateway.Class{Name: o.Class}).Ref()] = true
		t.related[anyOf((&gateway.Class{}).Ref().PolicyKind(), "")] = true
	case *gateway.ListenerSet:
		t.relateParent(gateway.Parent{Kind: gateway.KindGateway, Namespace: o.GatewayNamespace, Name: o.GatewayName})
	case *gateway.Service:
		for _, w := range waypointsOf(t.view) {
			if namespace, name, ok := waypointName(t.view, w, o); ok {
				t.relateParent(gateway.Parent{Kind: gateway.KindGateway, Namespace: namespace, Name: name})
			}
		}
	case *gateway.Route:
		for _, p := range o.Parents {
			t.relateParent(p)
		}
		for i := range o.Rules {
			for _, b := range o.Rules[i].Backends {
				t.relateBackend(o, b.Object)
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
}

func (t tracer) relateParent(p gateway.Parent) {
	ref := p.Ref()
	t.related[ref] = true
	t.relateSelectors(ref)
	if o := t.view.Get(ref); o != nil {
		t.relateDependencies(o)
	}
}

func (t tracer) relateBackend(r *gateway.Route, ref api.Ref) {
	t.related[ref] = true
	t.relateSelectors(ref)
	if ref.Namespace != r.Namespace {
		t.related[grantsOf(ref.Namespace)] = true
	}
}
