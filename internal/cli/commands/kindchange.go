package commands

import (
	"context"
	"math"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// kindChange is the state after a change of a PolicyProfile or a
// CustomResourceDefinition: the kinds, and the view with the policies decoded by
// them.
type kindChange struct {
	kinds *manifest.Kinds
	view  *snapshot.View
	// deletedKind is the kind of a definition that is deleted or no longer serves
	// any version; nil for none.
	deletedKind *api.PolicyKind
	// duplicate is set if another definition defines the kind already.
	duplicate *policykind.DefinedError
}

// guardKinds implements guard.KindReader with the kinds of a changeEvaluator.
type guardKinds struct {
	*changeEvaluator
	app *app
}

// Profiles implements guard.KindReader.
func (k guardKinds) Profiles() []api.ProfileInForce { return k.kinds.Profiles() }

// Schema implements guard.KindReader.
func (k guardKinds) Schema(ctx context.Context, ref api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	if k.set == nil && !k.kinds.Defined(ref) {
		d, err := k.app.definition(ctx, ref)
		return manifest.SchemaOf(d), err
	}
	return k.kinds.Schema(ref), nil
}

// ViewAfterKindChange implements guard.KindReader for the change that is being evaluated.
func (k guardKinds) ViewAfterKindChange(v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
	if k.kindChange == nil {
		return v, nil
	}
	if k.kindChange.duplicate != nil {
		return nil, k.kindChange.duplicate
	}
	return k.kindChange.view, nil
}

// compareKinds passes on the paths whose effective policies differ because their policies are
// read in another way: a write that does that is not evaluated path by path.
func (c *changeEvaluator) compareKinds(ctx context.Context, observe func(effective.Pair)) error {
	scope := effective.Scope{All: true}
	return c.guard.Engine.Compare(c.view, c.kindChange.view, scope, effective.NewBudget(ctx, math.MaxUint64), func(p effective.Pair) error {
		if p.Changed() {
			observe(p)
		}
		return nil
	})
}

// crdChange returns the change that a manifest of a CustomResourceDefinition
// makes. One that no effective policy depends on is applied right away, and the
// change returned is empty.
func (c *changeEvaluator) crdChange(ctx context.Context, o *manifest.Object) (guard.Change, error) {
	d, err := o.Definition()
	if err != nil {
		return guard.Change{}, err
	}
	kinds, defined := c.kinds.Clone(), d.Defines()
	if first := c.kinds.Definition(defined); first != nil && first.Name != d.Name && affectsPolicies(defined, c.kinds) {
		return c.duplicateDefinition(d, first.Name), nil
	}
	next := &kindChange{kinds: kinds}
	act := kinds.AddDefinition
	if c.remove || !manifest.Serves(d) {
		act, next.deletedKind = kinds.RemoveDefinition, &defined
	}
	if err := act(o); err != nil {
		return guard.Change{}, err
	}
	if !affectsPolicies(defined, c.kinds) && !affectsPolicies(defined, kinds) {
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
			change.Before = d // manifests rarely include the definitions of their kinds
		}
		return change, setDelete(d.Ref(), &change)
	case change.Before != nil:
		change.Operation = guard.Update
	}
	return change, nil
}

// duplicateDefinition returns the change of a second definition of a kind, which
// has no effect and is denied. Its deletion is an empty change.
func (c *changeEvaluator) duplicateDefinition(d *policykind.Definition, first string) guard.Change {
	if c.remove {
		return guard.Change{}
	}
	c.kindChange = &kindChange{kinds: c.kinds, view: c.view, duplicate: &policykind.DefinedError{Kind: d.Defines(), By: first}}
	return guard.Change{Operation: guard.Create, After: d}
}

// affectsPolicies reports whether effective policies depend on the objects of a
// kind.
func affectsPolicies(ref api.PolicyKind, kinds *manifest.Kinds) bool {
	return kinds.Of(ref) != nil || gateway.Known(ref) || ref == policykind.KindProfile || constraint.IsKind(ref)
}

// existingDefinition returns the existing definition of the kind that d defines,
// nil if there is none. The definitions of a cluster are not read: if the kind is
// installed or has objects there, d stands in for its definition.
func (c *changeEvaluator) existingDefinition(d *policykind.Definition) snapshot.Object {
	if old := c.kinds.Definition(d.Defines()); old != nil {
		return old
	}
	if c.installed[d.Defines()] {
		return d
	}
	for range c.view.Objects(d.Defines()) {
		return d
	}
	return nil
}

// profileChange returns the change that a manifest of a PolicyProfile makes. The
// objects after it are evaluated with the changed kind.
func (c *changeEvaluator) profileChange(ctx context.Context, o *manifest.Object) (guard.Change, error) {
	change := guard.Change{Operation: guard.Create}
	kinds := c.kinds.Clone()
	if old := kinds.ProfileNamed(o.Name); old != nil {
		change.Operation, change.Before = guard.Update, old
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

// reloadView returns the view with the kinds of a change, in which the policies
// of changed kinds are decoded again. It returns the same view if no kind changed.
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

// deleteObjects returns the deletions of all objects of a kind whose definition
// is deleted. Policies are removed with their kind, and PolicyProfiles are removed
// from kinds, so neither is among them.
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
