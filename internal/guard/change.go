package guard

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Operation is what a write does.
type Operation string

// The operations, as admission names them.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Change is a write to be evaluated.
type Change struct {
	Operation Operation
	// Before is the object as it is stored, nil on a create; After as it would
	// be, nil on a delete.
	Before, After snapshot.Object
	// User who writes, nil where the user is not known.
	User *authenticationv1.UserInfo
	// Owner is an owner that the write adds to the object, "" for none: the
	// object will be deleted with it.
	Owner string
	// GarbageCollected is set if the garbage collector deletes the object.
	GarbageCollected bool
	// Acknowledged is the object's annotation of that name.
	Acknowledged string
	// End, if set, is the view after all writes of a greater change that this one is part of:
	// it is evaluated as if they were one.
	End *snapshot.View
}

// Object returns the object as it would be, or the one that is deleted.
func (c Change) Object() snapshot.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// packPolicies packs a policy: its values are compared with those in the view, which are
// packed.
func (c *Change) packPolicies(v *snapshot.View) {
	if before, _ := c.Before.(*policykind.Policy); before != nil && v.Get(before.Ref()) != c.Before {
		c.Before = before.Pack()
	}
	if after, _ := c.After.(*policykind.Policy); after != nil && c.End == nil {
		c.After = after.Pack()
	}
}

// apply returns the views before and after the change.
func (c Change) apply(v *snapshot.View) (before, after *snapshot.View) {
	if c.End != nil {
		return v, c.End
	}
	before = v // but the request knows better than a cache
	switch {
	case c.Before == nil && v.Get(c.After.Ref()) != nil:
		before = v.With(snapshot.Delete(c.After.Ref()))
	case c.Before != nil && !storedInView(v, c.Before):
		before = v.With(snapshot.Put(c.Before))
	}
	if c.After == nil {
		return before, before.With(append(c.deletedToo(before), snapshot.Delete(c.Before.Ref()))...)
	}
	return before, before.With(snapshot.Put(c.After))
}

// deletedToo returns the changes that delete what a deletion takes with it: all objects in a
// namespace, and the policies that an object owns, or that such a policy owns.
func (c Change) deletedToo(v *snapshot.View) []snapshot.Change {
	if c.After != nil {
		return nil
	}
	var out []snapshot.Change
	if n, ok := c.Before.(*gateway.Namespace); ok {
		out = v.AllIn(n.Name)
	}
	gone := []api.Ref{c.Before.Ref()}
	for i := 0; i < len(gone); i++ {
		for p := range v.OwnedBy(gone[i]) {
			if ref := p.Ref(); !slices.Contains(gone, ref) {
				gone = append(gone, ref)
				out = append(out, snapshot.Delete(ref))
			}
		}
	}
	return out
}

// storedInView reports whether the view has the very policy or route that the request says
// is stored. The view's copy is then preferred: the memo has its folds.
func storedInView(v *snapshot.View, o snapshot.Object) bool {
	switch o := o.(type) {
	case *policykind.Policy:
		have, ok := v.Get(o.Ref()).(*policykind.Policy)
		return ok && (have == o || have.Same(o))
	case *gateway.Route:
		have, ok := v.Get(o.Ref()).(*gateway.Route)
		return ok && (have == o || have.Same(o))
	default:
		return false
	}
}

func objects(c Change) []snapshot.Object {
	return slices.DeleteFunc([]snapshot.Object{c.Before, c.After}, func(o snapshot.Object) bool { return o == nil })
}

// parentsOf returns the parents of a route or a listener set of supported kinds, none for nil.
func parentsOf(o snapshot.Object) []gateway.Parent {
	switch o := o.(type) {
	case *gateway.Route:
		return o.Parents
	case *gateway.ListenerSet:
		if o.Unread == (api.Ref{}) {
			return []gateway.Parent{{Kind: gateway.KindGateway, Namespace: o.GatewayNamespace, Name: o.GatewayName}}
		}
	}
	return nil
}

// reference is how an object refers to a policy that it attaches to itself.
type reference struct {
	to api.Ref
	at policykind.Target
}

// newReferences returns the first policies, as many as are read live, to which a write newly
// refers by filters of a route or a parametersRef: of the kinds of a view, each once.
func newReferences(v *snapshot.View, c Change) []reference {
	known := make(map[api.Ref]bool)
	for to := range v.References(c.Before) {
		known[to] = true
	}
	var out []reference
	for to, t := range v.References(c.After) {
		if by := t.AttachedBy; known[to] || by != policykind.ExtensionRef && by != policykind.ParametersRef || len(out) == maxLiveReads {
			continue
		}
		known[to] = true
		out = append(out, reference{to, t})
	}
	return out
}

// newParents returns the parents that a write adds to a route or a listener set.
func newParents(c Change) []gateway.Parent {
	was := parentsOf(c.Before)
	return slices.DeleteFunc(slices.Clone(parentsOf(c.After)), func(p gateway.Parent) bool { return slices.Contains(was, p) })
}
