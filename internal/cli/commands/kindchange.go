package commands

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// readings are how kinds are read after a change of a PolicyProfile or a
// CustomResourceDefinition, and the objects that there are then.
type kindChange struct {
	kinds *manifest.Kinds
	view  *snapshot.View
	// dropped is the kind of a definition that is deleted, or serves no version
	// any more; nil for none.
	deletedKind *api.PolicyKind
	// second tells that the definition is not the first one of its kind, nil if it is.
	duplicate *policykind.DefinedError
}

// known is what a guard asks about the kinds of a scene.
type guardKinds struct {
	*changeEvaluator
	app *app
}

// Profiles implements guard.Kinds.
func (k guardKinds) Profiles() []api.ProfileInForce { return k.kinds.Profiles() }

// Schema implements guard.Kinds.
func (k guardKinds) Schema(ctx context.Context, ref api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	if k.source.set == nil && !k.kinds.Defined(ref) {
		return k.app.schema(ctx, ref)
	}
	return k.kinds.Schema(ref), nil
}

// Reread implements guard.Kinds, for the change that is being judged.
func (k guardKinds) Reread(_ context.Context, v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
	if k.kindChange == nil {
		return v, nil
	}
	if k.kindChange.duplicate != nil {
		return nil, k.kindChange.duplicate
	}
	return k.kindChange.view, nil
}

// definition returns what the manifest of a CustomResourceDefinition would do.
// One that no effective policy depends on is made at once.
func (c *changeEvaluator) crdChange(ctx context.Context, o *manifest.Object) (guard.Change, error) {
	d, err := o.Definition()
	if err != nil {
		return guard.Change{}, err
	}
	kinds, of := c.kinds.Clone(), d.Defines()
	if first := c.kinds.Definition(of); first != nil && first.Name != d.Name && affectsPolicies(of, c.kinds) {
		return c.duplicateDefinition(d, first.Name), nil
	}
	next := &kindChange{kinds: kinds}
	act := kinds.AddDefinition
	if c.remove || !manifest.Serves(d) {
		act, next.deletedKind = kinds.RemoveDefinition, &of
	}
	if err := act(o); err != nil {
		return guard.Change{}, err
	}
	if !affectsPolicies(of, c.kinds) && !affectsPolicies(of, kinds) {
		c.kinds = kinds
		return guard.Change{}, nil
	}
	if next.view, err = c.reloadView(ctx, next); err != nil {
		return guard.Change{}, err
	}
	c.kindChange = next
	change := guard.Change{Operation: guard.Create, Before: c.existingDefinition(d), After: d}
	switch {
	case c.remove:
		if change.Before == nil {
			change.Before = d // manifests rarely hold the definitions of what is in them
		}
		return change, setDelete(d.Ref(), &change)
	case change.Before != nil:
		change.Operation = guard.Update
	}
	return change, nil
}

// second returns what the manifest of a second definition of a kind would do: nothing,
// but that it is denied. Nothing depends on one that is deleted.
func (c *changeEvaluator) duplicateDefinition(d *policykind.Definition, first string) guard.Change {
	if c.remove {
		return guard.Change{}
	}
	c.kindChange = &kindChange{kinds: c.kinds, view: c.view, duplicate: &policykind.DefinedError{Kind: d.Defines(), By: first}}
	return guard.Change{Operation: guard.Create, After: d}
}

// matters reports whether effective policies depend on the objects of a kind.
func affectsPolicies(ref api.PolicyKind, kinds *manifest.Kinds) bool {
	return kinds.Of(ref) != nil || gateway.Known(ref) || ref == policykind.KindProfile || constraint.IsKind(ref)
}

// defined returns the definition that is there already of the kind of another,
// nil if there is none. A cluster's own is known by its kind alone.
func (c *changeEvaluator) existingDefinition(d *policykind.Definition) snapshot.Object {
	if was := c.kinds.Definition(d.Defines()); was != nil {
		return was
	}
	if c.installed[d.Defines()] {
		return d
	}
	for range c.view.Objects(d.Defines()) {
		return d
	}
	return nil
}

// profile returns what the manifest of a PolicyProfile would do. The changes
// after it are judged with the kind as it then is.
func (c *changeEvaluator) profileChange(ctx context.Context, o *manifest.Object) (guard.Change, error) {
	change := guard.Change{Operation: guard.Create}
	kinds := c.kinds.Clone()
	if was := kinds.ProfileNamed(o.Name); was != nil {
		change.Operation, change.Before = guard.Update, was
	}
	if c.remove {
		if err := setDelete(o.Ref(kinds, ""), &change); err != nil {
			return change, err
		}
		kinds.RemoveProfile(o.Name)
	} else {
		if err := kinds.AddProfile(o, c.now, true); err != nil {
			return change, err
		}
		change.After = kinds.ProfileNamed(o.Name)
	}
	next := &kindChange{kinds: kinds}
	var err error
	if next.view, err = c.reloadView(ctx, next); err != nil {
		return change, err
	}
	c.kindChange = next
	return change, nil
}

// reread returns the view as it is with other kinds: the very one if nothing
// is read in another way. The policies of kinds that are, are read anew.
func (c *changeEvaluator) reloadView(ctx context.Context, next *kindChange) (*snapshot.View, error) {
	var changed []snapshot.Change
	if next.deletedKind != nil {
		changed = c.deleteObjects(*next.deletedKind, next.kinds)
	}
	old := make(map[api.PolicyKind]*policykind.Kind)
	for _, k := range c.kinds.All() {
		old[k.Ref()] = k
	}
	same := true
	for _, k := range next.kinds.All() {
		if old[k.Ref()] != k {
			same = false
			policies, err := c.raw.policies(ctx, next.kinds, k, old[k.Ref()])
			if err != nil {
				return nil, err
			}
			changed = append(changed, policies...)
		}
		delete(old, k.Ref())
	}
	if same && len(old) == 0 && len(changed) == 0 {
		return c.view, nil
	}
	return c.view.WithKinds(next.kinds.All()).With(changed...), nil
}

// dropObjects returns the changes that take out what is gone with the
// definition of a kind. Policies go with their kind, PolicyProfiles out of
// kinds.
func (c *changeEvaluator) deleteObjects(ref api.PolicyKind, kinds *manifest.Kinds) []snapshot.Change {
	if ref == policykind.KindProfile {
		for _, p := range kinds.Profiles() {
			kinds.RemoveProfile(p.Profile)
			for _, r := range p.Refused {
				kinds.RemoveProfile(r.Name)
			}
		}
		return nil
	}
	if c.kinds.Of(ref) != nil {
		return nil
	}
	var out []snapshot.Change
	for o := range c.view.Objects(ref) {
		out = append(out, snapshot.Delete(o.Ref()))
	}
	return out
}
