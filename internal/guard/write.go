package guard

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// write is a change with the views before and after it, and what was found. All that is
// evaluated of it has it.
type write struct {
	guard         *Guard
	change        Change
	before, after *snapshot.View
	// policy is the policy being written, old the same before; nil otherwise.
	policy, old *policykind.Policy
	// dependent are the kinds that depend on the kind of the policy that is written, or are deleted
	// with it.
	dependent []api.PolicyKind
	budget    *effective.Budget
	// deletedWithOwner is set if the policies are not edited by the write itself: they would be
	// deleted with a new owner.
	deletedWithOwner bool
	// everyKindUnlisted is set if policies may be attached anywhere.
	everyKindUnlisted bool
	findings          findings
	deletion          systemDeletion
}

// between returns the same write between two other views, of which nothing is found yet.
func (ev *write) between(before, after *snapshot.View) *write {
	return &write{
		guard: ev.guard, change: ev.change, before: before, after: after, old: ev.old, budget: ev.budget, deletedWithOwner: ev.deletedWithOwner, everyKindUnlisted: ev.everyKindUnlisted,
	}
}

// reads reports whether the reader of messages may read the objects of a namespace.
func (ev *write) reads(namespace string) bool {
	return ev.guard.ReadsAll || namespace == ev.writtenRef().Namespace
}

// routeName names a route to writers who may read it.
func (ev *write) routeName(r *gateway.Route) string {
	if ev.reads(r.Namespace) {
		return r.Ref().String()
	}
	return "a route of another namespace"
}

// writtenRef names the object that is written, none in an audit.
func (ev *write) writtenRef() api.Ref {
	if o := ev.change.Object(); o != nil {
		return o.Ref()
	}
	return api.Ref{}
}

// ownNamespace returns the namespace of the object that is written, or that it is.
func (ev *write) ownNamespace() string {
	ref := ev.change.Object().Ref()
	if ref.PolicyKind() == (api.PolicyKind{Kind: gateway.KindNamespace}) {
		return ref.Name
	}
	return ref.Namespace
}

// writesPolicy reports whether the object is a policy: then only effective policies of its
// own kind can change, and of those that depend on it.
func (ev *write) writesPolicy() bool {
	_, ok := ev.change.Object().(*policykind.Policy)
	return ok
}

// editsListeners reports whether the write may change which listeners a gateway has.
func (ev *write) editsListeners() bool {
	switch ev.change.Object().(type) {
	case *gateway.Gateway, *gateway.ListenerSet, *gateway.Namespace:
		return true
	default:
		return false
	}
}

// causedByWrite reports whether the write causes an override to meet what weakens it. One
// of the override's own policy does not, nor one of a gateway or its class: they bring the
// override to existing policies.
func (ev *write) causedByWrite(override api.Ref) bool {
	switch o := ev.change.Object().(type) {
	case *policykind.Policy:
		return o.Ref() != override
	case *gateway.Gateway, *gateway.Class:
		return false
	default:
		return true
	}
}

// ownerCause says that the object that is written would be deleted with its new owner.
func (ev *write) ownerCause() string {
	return fmt.Sprintf("%s would be deleted with %s, its new owner", ev.change.Object().Ref(), ev.change.Owner)
}

func (g *Guard) budget(ctx context.Context) *effective.Budget {
	if g.Budget == 0 {
		return effective.NewBudget(ctx, DefaultBudget).Grow(PathBudget)
	}
	return effective.NewBudget(ctx, g.Budget)
}
