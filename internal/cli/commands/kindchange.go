package commands

import (
	"context"
	"math"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// kindChange is a change of a PolicyProfile or a CustomResourceDefinition.
type kindChange struct {
	kinds *manifest.Kinds // after it
	// deletedKind is the kind of a definition that is deleted or no longer serves
	// any version; nil for none.
	deletedKind *api.PolicyKind
}

// compareKinds passes on the paths whose effective policies differ because their policies are
// read in another way: a write that does that is not evaluated path by path.
func (c *changeEvaluator) compareKinds(ctx context.Context, after *snapshot.View, observe func(effective.Pair)) error {
	scope := effective.Scope{All: true}
	return c.guard.Engine.Compare(c.view, after, scope, effective.NewBudget(ctx, math.MaxUint64), func(p effective.Pair) error {
		if p.Changed() {
			observe(p)
		}
		return nil
	})
}

// crdChange returns the change that a manifest of a CustomResourceDefinition
// makes, or its removal. One that no effective policy depends on is applied right away, and the
// change returned is empty.
func (c *changeEvaluator) crdChange(o *manifest.Object, remove bool) (change guard.Change, next *kindChange, err error) {
	d, err := o.Definition()
	if err != nil {
		return change, nil, err
	}
	kinds, defined := c.kinds.Clone(), d.Defines()
	act := kinds.AddDefinition
	if remove {
		act = kinds.RemoveDefinition
	}
	if err := act(o); err != nil {
		return change, nil, err
	}
	if !c.kinds.Reads(defined) && !kinds.Reads(defined) {
		c.kinds, c.view = kinds, c.view.WithKindConfig(kinds.Kinds)
		return change, nil, nil
	}
	next = &kindChange{kinds: kinds}
	if now := kinds.DefinitionOf(defined); now != nil && !now.Served() {
		next.deletedKind = &defined
	}
	if !remove {
		d = kinds.Definition(d.Name)
	}
	change = guard.Change{Operation: guard.Create, Before: c.existingDefinition(d, remove), After: d}
	switch {
	case remove:
		if change.Before == nil {
			change.Before = d
		}
		return change, next, setDelete(d.Ref(), &change)
	case change.Before != nil:
		change.Operation = guard.Update
	}
	return change, next, nil
}

// existingDefinition returns the existing definition that d replaces, nil if there is none. The
// definitions of a cluster are not read: if the kind is installed or has objects there, d stands
// in for its definition.
func (c *changeEvaluator) existingDefinition(d *policykind.Definition, remove bool) snapshot.Object {
	if old := c.kinds.Definition(d.Name); old != nil {
		return old
	}
	kind := d.Defines()
	used := c.kinds.DefinitionOf(kind)
	if used != nil && used.Name != "" && used.Name != d.Name {
		return nil // d is a second one of the kind
	}
	if remove && (used == nil || used.Name == "") {
		return d // manifests rarely include the definitions of their kinds
	}
	if remove || c.installed[kind] || c.view.Count(kind) > 0 {
		return &policykind.Definition{CustomResourceDefinition: d.CustomResourceDefinition, StandIn: true}
	}
	return nil
}

// profileChange returns the change that a manifest of a PolicyProfile makes. The
// objects after it are evaluated with the changed kind.
func (c *changeEvaluator) profileChange(o *manifest.Object, remove bool) (guard.Change, *kindChange, error) {
	change := guard.Change{Operation: guard.Create}
	kinds := c.kinds.Clone()
	if old := kinds.Profile(o.Name); old != nil {
		change.Operation, change.Before = guard.Update, old
	}
	next := &kindChange{kinds: kinds}
	if remove {
		return change, next, setDelete(o.Ref(kinds, ""), &change)
	}
	err := kinds.AddProfile(o, c.now, true)
	change.After = kinds.Profile(o.Name)
	return change, next, err
}

// reread returns the view after a change of kinds, with the policies decoded again that are read
// differently.
func (c *changeEvaluator) reread(ctx context.Context, v *snapshot.View, kinds *manifest.Kinds) (*snapshot.View, error) {
	kinds.Kinds = v.KindConfig()
	var changes []snapshot.Change
	for _, k := range kinds.All() {
		if v.Kind(k.Ref()) == k {
			continue
		}
		policies, err := c.raw.policies(ctx, kinds, k)
		if err != nil {
			return nil, err
		}
		changes = append(changes, policies...)
	}
	return v.WithUnlisted(nil).WithKinds(kinds.All()).With(changes...), nil
}
