package store

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
)

// Object is what the store holds: a *hierarchy.Class, Namespace, Gateway or
// Route, or a *policykind.Policy. Objects are immutable.
type Object interface{ Ref() api.Ref }

// Change puts an object into a view, or takes it out.
type Change struct {
	Ref api.Ref
	// Object is nil where the object is deleted.
	Object Object
}

// Put is the change that stores an object.
func Put(o Object) Change { return Change{Ref: o.Ref(), Object: o} }

// Delete is the change that removes an object.
func Delete(ref api.Ref) Change { return Change{Ref: ref} }

// View is the objects of one moment. It never changes; it may be read by any
// number of goroutines.
type View struct {
	kinds    []*policykind.Kind // sorted, those whose policies are all here
	objects  index[Object]
	byParent index[*hierarchy.Route]   // by gateway
	byClass  index[*hierarchy.Gateway] // by class
	byTarget index[*policykind.Policy] // by target, then kind
}

// With returns the view as it would be after the changes. v stays as it is.
func (v *View) With(changes ...Change) *View {
	next := *v
	for _, c := range changes {
		next.apply(c)
	}
	next.freeze()
	return &next
}

func (v *View) freeze() {
	v.objects.mine, v.byParent.mine, v.byClass.mine, v.byTarget.mine = false, false, false, false
}

func (v *View) apply(c Change) {
	at := objectKey(c.Ref)
	if old, ok := v.objects.get(at); ok {
		v.unlink(old)
	}
	if c.Object == nil {
		v.objects.remove(at)
		return
	}
	v.objects.set(at, c.Object)
	v.link(c.Object)
}

func (v *View) link(o Object) {
	switch o := o.(type) {
	case *hierarchy.Gateway:
		v.byClass.set(key(o.Class, o.Namespace, o.Name), o)
	case *hierarchy.Route:
		for _, p := range o.Parents {
			v.byParent.set(parentKey(p, o), o)
		}
	case *policykind.Policy:
		for _, t := range o.Targets {
			v.byTarget.set(targetKey(t, o), o)
		}
	}
}

func (v *View) unlink(o Object) {
	switch o := o.(type) {
	case *hierarchy.Gateway:
		v.byClass.remove(key(o.Class, o.Namespace, o.Name))
	case *hierarchy.Route:
		for _, p := range o.Parents {
			v.byParent.remove(parentKey(p, o))
		}
	case *policykind.Policy:
		for _, t := range o.Targets {
			v.byTarget.remove(targetKey(t, o))
		}
	}
}

func objectKey(r api.Ref) string { return key(r.Group, r.Kind, r.Namespace, r.Name) }

func parentKey(p hierarchy.Parent, r *hierarchy.Route) string {
	return key(p.Namespace, p.Name, r.Kind, r.Namespace, r.Name)
}

func targetKey(t policykind.Target, p *policykind.Policy) string {
	return key(t.Ref.Group, t.Ref.Kind, t.Ref.Namespace, t.Ref.Name, p.Kind.Group, p.Kind.Kind, p.Namespace, p.Name)
}

// Kinds returns the policy kinds whose policies the view holds, sorted.
func (v *View) Kinds() []*policykind.Kind { return v.kinds }

// Kind returns the policy kind of that name, or nil.
func (v *View) Kind(ref api.PolicyKind) *policykind.Kind {
	i := slices.IndexFunc(v.kinds, func(k *policykind.Kind) bool { return k.Ref() == ref })
	if i < 0 {
		return nil
	}
	return v.kinds[i]
}

// WithKinds returns the view with other policy kinds. Policies of kinds that
// are no longer among them are taken out.
func (v *View) WithKinds(kinds []*policykind.Kind) *View {
	next := *v
	next.kinds = slices.Clone(kinds)
	slices.SortFunc(next.kinds, func(a, b *policykind.Kind) int {
		return api.ComparePolicyKinds(a.Ref(), b.Ref())
	})
	for _, k := range v.kinds {
		if next.Kind(k.Ref()) == nil {
			next.drop(k.Ref())
		}
	}
	next.freeze()
	return &next
}

func (v *View) drop(kind api.PolicyKind) {
	for _, o := range slices.Collect(v.Objects(kind)) {
		v.apply(Delete(o.Ref()))
	}
}

// Get returns an object, or nil.
func (v *View) Get(ref api.Ref) Object {
	o, _ := v.objects.get(objectKey(ref))
	return o
}

// Objects yields the objects of a kind, by namespace and name.
func (v *View) Objects(kind api.PolicyKind) iter.Seq[Object] {
	return v.objects.under(key(kind.Group, kind.Kind))
}

// Count returns the number of objects of a kind.
func (v *View) Count(kind api.PolicyKind) int {
	n := 0
	for range v.Objects(kind) {
		n++
	}
	return n
}

// Gateway returns a gateway, or nil.
func (v *View) Gateway(namespace, name string) *hierarchy.Gateway {
	g, _ := v.Get((&hierarchy.Gateway{Namespace: namespace, Name: name}).Ref()).(*hierarchy.Gateway)
	return g
}

// Gateways yields all gateways, by namespace and name.
func (v *View) Gateways() iter.Seq[*hierarchy.Gateway] {
	return of[*hierarchy.Gateway](v, api.PolicyKind{Group: api.GatewayGroup, Kind: hierarchy.KindGateway})
}

// GatewaysOf yields the gateways of a class, by namespace and name.
func (v *View) GatewaysOf(class string) iter.Seq[*hierarchy.Gateway] {
	return v.byClass.under(key(class))
}

// RoutesOf yields the routes that name a gateway as a parent, by kind,
// namespace and name.
func (v *View) RoutesOf(namespace, name string) iter.Seq[*hierarchy.Route] {
	return v.byParent.under(key(namespace, name))
}

// Policies yields the policies of a kind, by namespace and name.
func (v *View) Policies(kind api.PolicyKind) iter.Seq[*policykind.Policy] {
	return of[*policykind.Policy](v, kind)
}

// PoliciesOn yields the policies of a kind that name a target, whatever the
// section, by namespace and name.
func (v *View) PoliciesOn(target api.Ref, kind api.PolicyKind) iter.Seq[*policykind.Policy] {
	return v.byTarget.under(key(target.Group, target.Kind, target.Namespace, target.Name, kind.Group, kind.Kind))
}

// AllPoliciesOn yields the policies of all kinds that name a target, whatever
// the section, by kind, namespace and name.
func (v *View) AllPoliciesOn(target api.Ref) iter.Seq[*policykind.Policy] {
	return v.byTarget.under(key(target.Group, target.Kind, target.Namespace, target.Name))
}

// NamespaceLabels returns the labels of a namespace. One that is not known has
// the label of its name, as every namespace.
func (v *View) NamespaceLabels(name string) labels.Set {
	if n, ok := v.Get((&hierarchy.Namespace{Name: name}).Ref()).(*hierarchy.Namespace); ok {
		return n.Labels
	}
	return labels.Set{corev1.LabelMetadataName: name}
}

func of[T Object](v *View, kind api.PolicyKind) iter.Seq[T] {
	return func(yield func(T) bool) {
		for o := range v.Objects(kind) {
			if t, ok := o.(T); ok && !yield(t) {
				return
			}
		}
	}
}
