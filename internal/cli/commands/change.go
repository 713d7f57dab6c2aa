package commands

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

var kindNamespace = api.PolicyKind{Kind: gateway.KindNamespace}

// change returns the change that the manifest of an object makes, or its removal, and what it
// changes about kinds, nil for nothing. It is empty if effective policies do not depend on the
// object.
func (c *changeEvaluator) change(ctx context.Context, o *manifest.Object, remove bool) (change guard.Change, kinds *kindChange, err error) {
	switch {
	case o.Kind == manifest.KindCRD:
		change, kinds, err = c.crdChange(o, remove)
	case o.Kind == policykind.KindProfile:
		change, kinds, err = c.profileChange(o, remove)
	case c.kinds.Reads(o.Kind):
		change, err = c.objectChange(o, remove)
	}
	if err != nil || change.Object() == nil {
		return guard.Change{}, nil, err
	}
	change, err = c.withMetadata(ctx, change, o)
	return change, kinds, err
}

// objectChange returns the change of an object that the snapshot holds.
func (c *changeEvaluator) objectChange(o *manifest.Object, remove bool) (guard.Change, error) {
	ref := o.Ref(c.kinds, c.namespace)
	change := guard.Change{Operation: guard.Create, Before: c.view.Get(ref)}
	if change.Before != nil {
		change.Operation = guard.Update
	}
	if remove {
		return change, setDelete(ref, &change)
	}
	// the API server sets the creation time, whatever the manifest has
	after, err := o.Decode(c.kinds, c.namespace, creationTime(change, c.now), true)
	change.After = after
	return change, err
}

// withMetadata returns the change with its user, its acknowledgement and the change of its
// owners. A deletion carries no annotations, so the acknowledgement on the stored object counts.
func (c *changeEvaluator) withMetadata(ctx context.Context, change guard.Change, o *manifest.Object) (guard.Change, error) {
	change.User = c.user
	remove, owned := change.Operation == guard.Delete, change.Operation == guard.Update && len(o.Owners()) > 0
	if !remove {
		change.Acknowledged = o.Annotation(api.AnnotationAcknowledge)
	}
	if !owned && (!remove || c.guard.BlastRadius == 0) {
		return change, nil
	}
	stored, err := c.raw.get(ctx, change.Object().Ref())
	switch {
	case err != nil:
		return change, err
	case stored == nil:
		stored = &manifest.Object{}
	}
	if remove {
		change.Acknowledged = stored.Annotation(api.AnnotationAcknowledge)
	} else {
		change.Owner = guard.NewOwners(stored.Owners(), o.Owners())
	}
	return change, nil
}

// creationTime returns the creation time of the object after a change, in seconds
// since 1970: that of the policy, route, gateway or listener set that it updates, else now.
func creationTime(change guard.Change, now int64) int64 {
	switch o := change.Before.(type) {
	case *policykind.Policy:
		return o.Created
	case *gateway.Route:
		return o.Created
	case *gateway.Gateway:
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
