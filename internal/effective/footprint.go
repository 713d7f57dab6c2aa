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

// Footprint is where a change may meet others: two changes can matter to one
// path only if one of them touches what the paths of the other go through. It
// errs on the side of meeting.
type Footprint struct {
	all bool
	// touch are the objects whose paths change; and what stands for many: the
	// grants of a namespace (grantsOf), all objects of a kind that a selector
	// may choose from (anyOf).
	touched map[api.Ref]bool
	// around are those that such paths go through, or hang on, besides: what is
	// above and below. What hangs under a root is not listed there: it has the
	// root around itself.
	related map[api.Ref]bool
}

// Everywhere is the footprint of a change that may matter to any path.
func Everywhere() *Footprint { return &Footprint{all: true} }

// FootprintOf returns the footprint of a change, given the object as it was and
// as it will be. What is around it is looked up in the views: those before and
// after, with and without other changes.
func FootprintOf(objects []snapshot.Object, views ...*snapshot.View) *Footprint {
	f := &Footprint{touched: make(map[api.Ref]bool), related: make(map[api.Ref]bool)}
	for _, v := range views {
		t := tracer{f, v}
		for _, o := range objects {
			if o != nil {
				t.addChange(o)
			}
		}
	}
	return f
}

// Meets reports whether two changes may matter to one path.
func (f *Footprint) Overlaps(o *Footprint) bool {
	return f.all || o.all || intersect(f.touched, o.touched) || intersect(f.touched, o.related) || intersect(f.related, o.touched)
}

// All reports whether the change may matter to any path.
func (f *Footprint) All() bool { return f.all }

// Len returns how many objects the footprint names.
func (f *Footprint) Len() int { return len(f.touched) + len(f.related) }

// Touched yields the objects whose paths change, in no order.
func (f *Footprint) Touched() iter.Seq[api.Ref] { return maps.Keys(f.touched) }

// Around yields the objects that such paths go through, or depend on, besides, in
// no order.
func (f *Footprint) Related() iter.Seq[api.Ref] { return maps.Keys(f.related) }

// Clone returns a footprint that can be changed by itself.
func (f *Footprint) Clone() *Footprint {
	return &Footprint{f.all, maps.Clone(f.touched), maps.Clone(f.related)}
}

// Hold adds all that another footprint has to what is around this one.
func (f *Footprint) AddRelated(o *Footprint) {
	maps.Copy(f.related, o.touched)
	maps.Copy(f.related, o.related)
}

// Touch adds all that another footprint has to what this one touches.
func (f *Footprint) AddTouched(o *Footprint) {
	maps.Copy(f.touched, o.touched)
	maps.Copy(f.touched, o.related)
}

// Join adds what another footprint of the same change has, of another view.
func (f *Footprint) Join(o *Footprint) {
	f.all = f.all || o.all
	maps.Copy(f.touched, o.touched)
	maps.Copy(f.related, o.related)
}

// Growth is how the footprint of a change follows other changes: which other
// changes make it larger.
type Growth int

// The growths.
const (
	// GrowsAround follows changes of what paths are made of: what such a change
	// has is around this one, too.
	GrowsRelated Growth = iota
	// GrowsTouch follows all changes, and touches what they touch: a
	// ReferenceGrant and a selector of labels have their targets by what other
	// objects say.
	GrowsTouched
)

// GrowthOf returns the growth of a change, given the object as it was and as it
// will be.
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

// Links reports whether paths go through an object, so that its change makes
// the footprints of others larger. They never go through a policy.
func Links(o snapshot.Object) bool {
	_, policy := o.(*policykind.Policy)
	return !policy
}

// RoutesOnly returns the routes through which all paths go that a change touches,
// given the object as it was and as it will be: of a route itself, and of a policy
// that names routes alone. Two such changes that have no route in common cannot
// meet, which is known without a look at any view. ok is false for other changes.
func RoutesOnly(objects ...snapshot.Object) (routes []api.Ref, ok bool) {
	for _, o := range objects {
		switch o := o.(type) {
		case nil:
		case *gateway.Route:
			routes = append(routes, o.Ref())
		case *policykind.Policy:
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

// Through returns what tells whether a path goes through what the change
// touches. Paths name no groups, so neither is asked for one.
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

// tracer fills a footprint with what one view knows.
type tracer struct {
	*Footprint
	view *snapshot.View
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
			t.touched[grantsOf("")] = true // any grant lets a selector choose more
		default:
			t.related[grantsOf(target.Ref.Namespace)] = true
		}
	}
	for _, target := range t.view.Targets(p) {
		if target.Selector == nil {
			t.touchObject(target.Ref)
		}
	}
}

// grant touches whatever may need it.
func (t tracer) touchGrant(g *gateway.Grant) {
	t.touched[grantsOf(g.Namespace)], t.related[grantsOf("")] = true, true
	t.related[(&gateway.Namespace{Name: g.Namespace}).Ref()] = true // whose footprint has it around
	p := plan{view: t.view}
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

// object touches an object, which need not be there.
func (t tracer) touchObject(ref api.Ref) {
	t.touched[ref] = true
	switch ref.PolicyKind() {
	case api.PolicyKind{Kind: gateway.KindMesh}:
		t.all = true
	case api.PolicyKind{Kind: gateway.KindNamespace}:
		t.relateNamespace(ref.Name)
	default:
		for r := range t.view.RoutesTo(ref) { // which has the backend around itself
			t.relateDependencies(r)
		}
	}
	if o := t.view.Get(ref); o != nil {
		t.relateDependencies(o)
	}
}

// namespace has everything in it around, and what that hangs on.
func (t tracer) relateNamespace(name string) {
	hold := func(kind api.PolicyKind) {
		for o := range t.view.In(kind, name) {
			t.related[o.Ref()] = true
			t.relateDependencies(o)
		}
	}
	hold(api.PolicyKind{Kind: gateway.KindService})
	for _, kind := range gateway.GatewayKinds {
		hold(gateway.GatewayKind(kind))
	}
}

// hold puts around what an object hangs on: what it names, where it is, and
// what that hangs on in turn.
func (t tracer) relateDependencies(o snapshot.Object) {
	t.relateSelectors(o.Ref())
	switch o := o.(type) {
	case *gateway.Gateway:
		t.related[(&gateway.Class{Name: o.Class}).Ref()] = true
		t.related[anyOf((&gateway.Class{}).Ref().PolicyKind(), "")] = true
	case *gateway.ListenerSet:
		t.relateParent(gateway.Parent{Kind: gateway.KindGateway, Namespace: o.GatewayNamespace, Name: o.GatewayName})
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

// chosen puts around what may choose an object: its namespace, and selectors.
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
