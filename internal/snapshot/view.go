package snapshot

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Object is an object of a view: a *gateway.Class, Namespace, Gateway, ListenerSet,
// Service, Grant, Route or Labeled, a *policykind.Policy, or a *constraint.Constraint. Objects
// are immutable.
type Object interface{ Ref() api.Ref }

// Change sets an object of a view, or deletes it.
type Change struct {
	Ref api.Ref
	// Object is nil for a deletion.
	Object Object
}

// Put returns the change that sets an object.
func Put(o Object) Change { return Change{Ref: o.Ref(), Object: o} }

// Delete returns the change that deletes an object.
func Delete(ref api.Ref) Change { return Change{Ref: ref} }

// View has all objects at one point in time. It is immutable, and safe for concurrent
// use.
type View struct {
	kinds     []*policykind.Kind // listed kinds, sorted
	populated []*policykind.Kind // those of them with a policy
	unlisted  []*policykind.Kind // kinds that were never listed, sorted
	counts    counts
	objects   index[Object]
	byParent  index[*gateway.Route]       // by gateway, listener set or service
	byHost    index[*gateway.Route]       // by parent, hostname and first segment
	byBackend index[*gateway.Route]       // by backend
	byClass   index[*gateway.Gateway]     // by class
	bySet     index[*gateway.ListenerSet] // by gateway
	byTarget  index[*policykind.Policy]   // by target, then kind
	selecting index[*policykind.Policy]   // by the kind that they select, then namespace
	naming    index[*policykind.Policy]   // by the backend that they refer to
	// attached are those of the kinds whose policies are attached by references,
	// byReference are the objects that refer to them, by policy and by themselves.
	attached    []*policykind.Kind
	byReference index[Object]
	// constraints are the valid ones by policy kind, sorted. The map is copied on each
	// write: they are few, and rarely written.
	constraints map[api.PolicyKind][]*constraint.Constraint
	// version is the highest resourceVersion that any source had reached.
	version uint64
	// config is nil in a view that was made without (KindConfig).
	config *Kinds
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
	v.objects.owned, v.byTarget.owned, v.selecting.owned, v.naming.owned, v.counts.owned = false, false, false, false, false
	v.byParent.owned, v.byHost.owned, v.byBackend.owned, v.byClass.owned, v.bySet.owned = false, false, false, false, false
	v.byReference.owned = false
}

func (v *View) apply(c Change) {
	referrers := v.referrers(c.Ref)
	for _, o := range referrers {
		for at := range v.referenceKeys(o) {
			v.byReference.remove(at)
		}
	}
	at := objectKey(c.Ref)
	old, had := v.objects.get(at)
	shareMatches(old, c.Object)
	if had != (c.Object != nil) {
		v.count(c.Ref.PolicyKind(), had)
	}
	if c.Object == nil {
		v.objects.remove(at)
	} else {
		v.objects.set(at, c.Object)
	}
	v.replaceConstraint(old, c.Object)
	v.links(c.Object, func(index link, key string) { index.put(key, c.Object) })
	v.links(old, func(index link, key string) { index.removeUnless(key, c.Object) }) // most updates change none
	for _, o := range referrers {
		for at := range v.referenceKeys(o) {
			v.byReference.set(at, o)
		}
	}
}

// count counts an object of a kind that was deleted or created.
func (v *View) count(kind api.PolicyKind, deleted bool) {
	if n := v.counts.add(kind, deleted); n == 0 || n == 1 && !deleted {
		v.populate()
	}
}

// populate updates the list of kinds with a policy.
func (v *View) populate() {
	v.populated = slices.DeleteFunc(slices.Clone(v.kinds), func(k *policykind.Kind) bool { return v.Count(k.Ref()) == 0 })
}

// shareMatches saves a route the work on matches that it had before.
func shareMatches(old, edited Object) {
	before, _ := old.(*gateway.Route)
	if after, ok := edited.(*gateway.Route); ok && before != nil {
		after.ShareMatches(before)
	}
}

// links visits the keys of an object, nil for none, in the indexes.
func (v *View) links(o Object, visit func(link, string)) {
	for at := range v.referenceKeys(o) {
		visit(&v.byReference, at)
	}
	switch o := o.(type) {
	case *gateway.Gateway:
		visit(&v.byClass, key(o.Class, o.Namespace, o.Name))
	case *gateway.ListenerSet:
		visit(&v.bySet, setKey(o))
	case *gateway.Route:
		for _, p := range o.Parents {
			visit(&v.byParent, parentKey(p, o))
		}
		for at := range hostKeys(o) {
			visit(&v.byHost, at)
		}
		for at := range backendKeys(o) {
			visit(&v.byBackend, at)
		}
	case *policykind.Policy:
		for _, t := range o.Targets {
			if t.Selector != nil {
				visit(&v.selecting, selectKey(t, o))
			} else {
				visit(&v.byTarget, targetKey(t, o))
			}
		}
		for _, b := range o.Backends {
			visit(&v.naming, targetKey(policykind.Target{Ref: b.Object}, o))
		}
	}
}

func objectKey(r api.Ref) string { return key(r.Group, r.Kind, r.Namespace, r.Name) }

func setKey(s *gateway.ListenerSet) string {
	return key(s.GatewayNamespace, s.GatewayName, s.Ref().Kind, s.Namespace, s.Name)
}

func parentKey(p gateway.Parent, r *gateway.Route) string {
	return key(p.Kind, p.Namespace, p.Name, r.Kind, r.Namespace, r.Name)
}

// hostKeys yields the keys of a route in byHost. "" stands for a route without
// hostnames, and for matches of any path.
func hostKeys(r *gateway.Route) iter.Seq[string] {
	hostnames := r.Hostnames
	if len(hostnames) == 0 {
		hostnames = []string{""}
	}
	return func(yield func(string) bool) {
		for i, p := range r.Parents {
			if slices.ContainsFunc(r.Parents[:i], func(o gateway.Parent) bool { return o.Is(p.Kind, p.Namespace, p.Name) }) {
				continue // another section or port of it
			}
			for _, h := range hostnames {
				for _, s := range r.Segments() {
					if !yield(key(p.Kind, p.Namespace, p.Name, h, s, r.Kind, r.Namespace, r.Name)) {
						return
					}
				}
			}
		}
	}
}

func backendKeys(r *gateway.Route) iter.Seq[string] {
	return func(yield func(string) bool) {
		var seen []api.Ref // most rules of a route have the same ones
		for i := range r.Rules {
			for _, b := range r.Rules[i].Backends {
				o := b.Object
				if slices.Contains(seen, o) {
					continue
				}
				seen = append(seen, o)
				if !yield(key(o.Group, o.Kind, o.Namespace, o.Name, r.Kind, r.Namespace, r.Name)) {
					return
				}
			}
		}
	}
}

func targetKey(t policykind.Target, p *policykind.Policy) string {
	on, by := t.Ref, p.Ref()
	return key(on.Group, on.Kind, on.Namespace, on.Name, by.Group, by.Kind, by.Namespace, by.Name)
}

// selectKey has the namespace in which a policy selects, empty if in all.
func selectKey(t policykind.Target, p *policykind.Policy) string {
	by := p.Ref()
	return key(t.Ref.Group, t.Ref.Kind, t.Ref.Namespace, by.Group, by.Kind, by.Namespace, by.Name)
}

// Kinds returns the policy kinds whose policies the view holds, sorted.
func (v *View) Kinds() []*policykind.Kind { return v.kinds }

// Populated returns those of the kinds that have a policy in the view.
func (v *View) Populated() []*policykind.Kind { return v.populated }

// Kind returns a policy kind, or nil.
func (v *View) Kind(ref api.PolicyKind) *policykind.Kind {
	i := slices.IndexFunc(v.kinds, func(k *policykind.Kind) bool { return k.Ref() == ref })
	if i < 0 {
		return nil
	}
	return v.kinds[i]
}

// WithKinds returns the view with other policy kinds. Policies of kinds that are removed
// or have another profile are removed.
func (v *View) WithKinds(kinds []*policykind.Kind) *View {
	next := *v
	next.kinds = slices.Clone(kinds)
	slices.SortFunc(next.kinds, func(a, b *policykind.Kind) int {
		return api.ComparePolicyKinds(a.Ref(), b.Ref())
	})
	for _, k := range v.kinds {
		if next.Kind(k.Ref()) != k {
			next.removePolicies(k.Ref())
		}
	}
	next.populate()
	next.attachKinds()
	next.freeze()
	return next.WithUnlisted(v.unlisted)
}

// Unlisted returns the policy kinds of the cluster whose policies were never listed,
// sorted: the view has none of their policies, and any can exist.
func (v *View) Unlisted() []*policykind.Kind { return v.unlisted }

// WithUnlisted returns the view with other kinds that were never listed. A kind of
// the view is not one of them.
func (v *View) WithUnlisted(kinds []*policykind.Kind) *View {
	next := *v
	next.unlisted = slices.DeleteFunc(slices.Clone(kinds), func(k *policykind.Kind) bool { return v.Kind(k.Ref()) != nil })
	slices.SortFunc(next.unlisted, func(a, b *policykind.Kind) int { return api.ComparePolicyKinds(a.Ref(), b.Ref()) })
	return &next
}

func (v *View) removePolicies(kind api.PolicyKind) {
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
	return v.objects.withPrefix(key(kind.Group, kind.Kind))
}

// Count returns the number of objects of a kind.
func (v *View) Count(kind api.PolicyKind) int { return v.counts.of[kind] }

// Gateway returns a gateway, or nil.
func (v *View) Gateway(namespace, name string) *gateway.Gateway {
	g, _ := v.Get((&gateway.Gateway{Namespace: namespace, Name: name}).Ref()).(*gateway.Gateway)
	return g
}

// Gateways yields all gateways, by namespace and name.
func (v *View) Gateways() iter.Seq[*gateway.Gateway] {
	return objectsOf[*gateway.Gateway](v.Objects(api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGateway}))
}

// GatewaysOf yields the gateways of a class, by namespace and name.
func (v *View) GatewaysOf(class string) iter.Seq[*gateway.Gateway] {
	return v.byClass.withPrefix(key(class))
}

// SetsOf yields the listener sets that have a gateway as their parent, whether it allows
// them or not, by kind, namespace and name.
func (v *View) SetsOf(g *gateway.Gateway) iter.Seq[*gateway.ListenerSet] {
	return v.bySet.withPrefix(key(g.Namespace, g.Name))
}

// RoutesOf yields the routes that have a Gateway, ListenerSet or Service as a parent, by
// kind, namespace and name.
func (v *View) RoutesOf(parent api.Ref) iter.Seq[*gateway.Route] {
	return v.byParent.withPrefix(key(parent.Kind, parent.Namespace, parent.Name))
}

// RoutesOfKind yields those of RoutesOf that are of a kind.
func (v *View) RoutesOfKind(parent api.Ref, kind string) iter.Seq[*gateway.Route] {
	return v.byParent.withPrefix(key(parent.Kind, parent.Namespace, parent.Name, kind))
}

// GatewayOf returns the gateway that a route attaches to by a parent, itself or through a
// listener set; nil for none.
func (v *View) GatewayOf(p gateway.Parent) *gateway.Gateway {
	switch o := v.Get(p.Ref()).(type) {
	case *gateway.Gateway:
		return o
	case *gateway.ListenerSet:
		return v.Gateway(o.GatewayNamespace, o.GatewayName)
	default:
		return nil
	}
}

// Listeners returns all listeners of a gateway in their order of precedence: its own, then
// those that its listener sets add, the oldest set first, then by namespace and name.
func (v *View) Listeners(g *gateway.Gateway) []gateway.ListenerMatch {
	out := gateway.OwnListeners(g)
	for _, s := range slices.SortedFunc(v.SetsOf(g), gateway.CompareSets) {
		out = append(out, gateway.SetListeners(g, s, v.NamespaceLabels(s.Namespace))...)
	}
	return out
}

// Router returns the router of a gateway of the view.
func (v *View) Router(g *gateway.Gateway, reading gateway.Reading) *gateway.Router {
	return gateway.NewRouter(v.Listeners(g), v, reading)
}

// RoutesAt yields the routes with a parent that have a hostname, "" for those without
// hostnames, and a match of paths with a first segment, "" for those of any, each once.
func (v *View) RoutesAt(parent api.Ref, hostname, segment string) iter.Seq[*gateway.Route] {
	if segment != gateway.AllSegments {
		return v.byHost.withPrefix(key(parent.Kind, parent.Namespace, parent.Name, hostname, segment))
	}
	return func(yield func(*gateway.Route) bool) {
		if v.byHost.tree == nil {
			return
		}
		prefix := key(parent.Kind, parent.Namespace, parent.Name, hostname)
		v.byHost.tree.Ascend(prefix, func(at string, r *gateway.Route) bool {
			if !strings.HasPrefix(at, prefix) {
				return false
			}
			segment, _, _ := strings.Cut(at[len(prefix):], "\x00")
			again := slices.ContainsFunc(r.Segments(), func(s string) bool { return s < segment })
			return again || yield(r)
		})
	}
}

// RoutesTo yields the routes with a rule that sends traffic to a backend, by
// kind, namespace and name.
func (v *View) RoutesTo(backend api.Ref) iter.Seq[*gateway.Route] {
	return v.byBackend.withPrefix(objectKey(backend))
}

// BackendsIn yields the routes with a backend of a kind in a namespace; a route is
// repeated for each of these backends.
func (v *View) BackendsIn(kind api.PolicyKind, namespace string) iter.Seq[*gateway.Route] {
	return v.byBackend.withPrefix(key(kind.Group, kind.Kind, namespace))
}

// Naming yields the policies that refer to a backend.
func (v *View) Naming(backend api.Ref) iter.Seq[*policykind.Policy] {
	return v.naming.withPrefix(objectKey(backend))
}

// Named yields the backends that policies refer to; one is repeated for each policy.
func (v *View) Named() iter.Seq[api.Ref] {
	return func(yield func(api.Ref) bool) {
		for p := range v.naming.withPrefix("") {
			for _, b := range p.Backends {
				if !yield(b.Object) {
					return
				}
			}
		}
	}
}

// In yields the objects of a kind in a namespace, by name.
func (v *View) In(kind api.PolicyKind, namespace string) iter.Seq[Object] {
	return v.objects.withPrefix(key(kind.Group, kind.Kind, namespace))
}

// AllIn returns the changes that delete all objects in a namespace.
func (v *View) AllIn(namespace string) []Change {
	var out []Change
	for o := range v.objects.withPrefix("") {
		if o.Ref().Namespace == namespace {
			out = append(out, Delete(o.Ref()))
		}
	}
	return out
}

// Policies yields the policies of a kind, by namespace and name.
func (v *View) Policies(kind api.PolicyKind) iter.Seq[*policykind.Policy] {
	return objectsOf[*policykind.Policy](v.Objects(kind))
}

// OwnedBy yields the policies that an object owns: in its namespace, if it has one.
func (v *View) OwnedBy(owner api.Ref) iter.Seq[*policykind.Policy] {
	return func(yield func(*policykind.Policy) bool) {
		unplaced := owner
		unplaced.Namespace = ""
		for _, k := range v.kinds {
			objects := v.Objects(k.Ref())
			if owner.Namespace != "" {
				objects = v.In(k.Ref(), owner.Namespace)
			}
			for o := range objects {
				if p, ok := o.(*policykind.Policy); ok && slices.Contains(p.Owners, unplaced) && !yield(p) {
					return
				}
			}
		}
	}
}

// NamespaceLabels returns the labels of a namespace. One that is not in the view has the
// label with its name, as every namespace.
func (v *View) NamespaceLabels(name string) labels.Set {
	if n, ok := v.Get((&gateway.Namespace{Name: name}).Ref()).(*gateway.Namespace); ok {
		return n.Labels
	}
	return labels.Set{corev1.LabelMetadataName: name}
}

func objectsOf[T Object](all iter.Seq[Object]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for o := range all {
			if t, ok := o.(T); ok && !yield(t) {
				return
			}
		}
	}
}
