package commands

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

var kindNamespace = api.PolicyKind{Kind: gateway.KindNamespace}

// change returns the change that the manifest of an object makes. It is empty if
// effective policies do not depend on the object.
func (c *changeEvaluator) change(ctx context.Context, o *manifest.Object) (guard.Change, error) {
	c.kindChange = nil
	var change guard.Change
	var err error
	switch {
	case o.Kind == manifest.KindCRD:
		change, err = c.crdChange(o)
	case o.Kind == policykind.KindProfile:
		change, err = c.profileChange(o)
	case c.kinds.Reads(o.Kind):
		change, err = c.objectChange(o)
	}
	if err != nil || change.Object() == nil {
		return guard.Change{}, err
	}
	return c.withMetadata(ctx, change, o)
}

// objectChange returns the change of an object that the snapshot holds.
func (c *changeEvaluator) objectChange(o *manifest.Object) (guard.Change, error) {
	ref := o.Ref(c.kinds, c.namespace)
	change := guard.Change{Operation: guard.Create, Before: c.view.Get(ref)}
	if change.Before != nil {
		change.Operation = guard.Update
	}
	if c.remove {
		return change, setDelete(ref, &change)
	}
	// the API server sets the creation time, whatever the manifest has
	after, err := o.Decode(c.kinds, c.namespace, creationTime(change, c.now), true)
	change.After = after
	return change, err
}

// withMetadata returns the change with its user, its acknowledgement and the
// change of its owners.
func (c *changeEvaluator) withMetadata(ctx context.Context, change guard.Change, o *manifest.Object) (guard.Change, error) {
	change.User = c.user
	if c.remove {
		return change, nil // evaluate reads the acknowledgement of a deletion
	}
	change.Acknowledged = o.Annotation(api.AnnotationAcknowledge)
	if change.Operation != guard.Update || len(o.Owners()) == 0 {
		return change, nil
	}
	stored, err := c.raw.get(ctx, change.Object().Ref())
	if err != nil {
		return change, err
	}
	var had []metav1.OwnerReference
	if stored != nil {
		had = stored.Owners()
	}
	change.Owner = guard.NewOwners(had, o.Owners())
	return change, nil
}

// creationTime returns the creation time of the object after a change, in seconds
// since 1970: that of the policy, route or listener set that it updates, else now.
func creationTime(change guard.Change, now int64) int64 {
	switch o := change.Before.(type) {
	case *policykind.Policy:
		return o.Created
	case *gateway.Route:
		return o.Created
	case *gateway.ListenerSet:
		return o.Created
	default:
		return now
	}
}

// setDelete turns a change into a deletion. It returns errNotFound if the object
// does not exist.
func setDelete(ref api.Ref, change *guard.Change) error {
	change.Operation, change.After = guard.Delete, nil
	if change.Before == nil {
		return fmt.Errorf("cannot delete %s: %w", ref, errNotFound)
	}
	return nil
}
