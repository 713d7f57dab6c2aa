package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// definition makes the kind of a CustomResourceDefinition known, or drops it
// with all its policies.
func (c *changes) definition(ctx context.Context, o *manifest.Object) error {
	kinds := c.kinds.Clone()
	act := kinds.Define
	if c.remove {
		act = kinds.Forget
	}
	if err := act(o); err != nil {
		return err
	}
	view, _, err := c.reread(ctx, kinds)
	if err == nil {
		c.kinds, c.view = kinds, view
	}
	return err
}

// profile judges a PolicyProfile. The changes after it are judged with the
// kind as it then is.
func (c *changes) profile(ctx context.Context, o *manifest.Object) error {
	kinds := c.kinds.Clone()
	change, err := c.profileChange(o, kinds)
	if err != nil {
		return err
	}
	judgement, err := c.ask(ctx, change, nil)
	if err != nil {
		return err
	}
	view, changed, err := c.reread(ctx, kinds)
	if err != nil {
		return err
	}
	pairs, err := c.readings(ctx, view, changed)
	if err != nil {
		return err
	}
	if c.judged(judgement, pairs) {
		c.kinds, c.view = kinds, view
	}
	return nil
}

// profileChange returns what the manifest of a profile would do, and makes it
// in kinds.
func (c *changes) profileChange(o *manifest.Object, kinds *manifest.Kinds) (guard.Change, error) {
	change := guard.Change{Operation: guard.Create}
	if was := kinds.Written(o.Name); was != nil {
		change.Operation, change.Before = guard.Update, was
	}
	if c.remove {
		err := c.toDelete(o.Ref(kinds, ""), &change)
		kinds.Unprofile(o.Name)
		return change, err
	}
	if err := kinds.Profile(o, c.now, true); err != nil {
		return change, err
	}
	change.After = kinds.Written(o.Name)
	return change, nil
}

// reread returns the view as it is with other kinds, and the kinds that are
// read in another way then. Their policies are read anew.
func (c *changes) reread(ctx context.Context, kinds *manifest.Kinds) (*store.View, []api.PolicyKind, error) {
	old := make(map[api.PolicyKind]*policykind.Kind)
	for _, k := range c.kinds.All() {
		old[k.Ref()] = k
	}
	var changed []api.PolicyKind
	view := c.view.WithKinds(kinds.All())
	for _, k := range kinds.All() {
		if was := old[k.Ref()]; was != k {
			changed = append(changed, k.Ref())
			policies, err := c.sources.policies(ctx, kinds, k)
			if err != nil {
				return nil, nil, err
			}
			view = view.With(policies...)
		}
		delete(old, k.Ref())
	}
	for ref := range old {
		changed = append(changed, ref)
	}
	return view, changed, nil
}

// readings returns the paths whose effective policy differs because kinds are
// read in another way.
func (c *changes) readings(ctx context.Context, after *store.View, changed []api.PolicyKind) ([]effective.Pair, error) {
	var pairs []effective.Pair
	at := make(map[reading]int)
	walk := func(v *store.View, put func(*effective.Pair, *effective.Effective)) error {
		budget := effective.NewBudget(ctx, math.MaxUint64)
		return c.guard.Engine.Walk(onlyKinds(v, changed), effective.Scope{All: true}, false, budget, func(e *effective.Effective) error {
			is := reading{e.Path.ID(), e.Kind.Ref()}
			i, ok := at[is]
			if !ok {
				i, pairs = len(pairs), append(pairs, effective.Pair{})
				at[is] = i
			}
			put(&pairs[i], e)
			return nil
		})
	}
	err := errors.Join(
		walk(c.view, func(p *effective.Pair, e *effective.Effective) { p.Before = e }),
		walk(after, func(p *effective.Pair, e *effective.Effective) { p.After = e }),
	)
	if err != nil {
		return nil, fmt.Errorf("compare effective policies: %w", err)
	}
	return slices.DeleteFunc(pairs, func(p effective.Pair) bool { return !p.Changed() }), nil
}

// reading is a path of a kind, whatever the kind's profile.
type reading struct {
	path hierarchy.ID
	kind api.PolicyKind
}

func onlyKinds(v *store.View, refs []api.PolicyKind) *store.View {
	var kinds []*policykind.Kind
	for _, ref := range refs {
		if k := v.Kind(ref); k != nil {
			kinds = append(kinds, k)
		}
	}
	return v.WithKinds(kinds)
}
