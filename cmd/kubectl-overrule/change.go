package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// changeFlags are the flags of the commands that look at changes.
type changeFlags struct {
	paths, against []string
	remove         bool
}

func (f *changeFlags) add(cmd *cobra.Command) {
	pathsFlag(cmd, &f.paths, "the change: manifests as they would be applied")
	cmd.Flags().StringArrayVar(&f.against, "against", nil, "judge it on top of these manifests instead of the cluster (repeatable)")
	cmd.Flags().BoolVar(&f.remove, "delete", false, "the objects of the change are deleted")
}

var errNoChange = errors.New("name the manifests of the change with -f")

// changes are judged one after another, each on top of those before it.
type changes struct {
	*scene
	guard  *guard.Guard
	set    *manifest.Set
	remove bool
	now    int64
	// judged is called with each judgement and the paths that differ; it says
	// whether the change is to be made.
	judged func(*guard.Judgement, []effective.Pair) bool
}

// judge judges all changes of the flags.
func (a *app) judge(ctx context.Context, f changeFlags, judged func(*guard.Judgement, []effective.Pair) bool) error {
	if len(f.paths) == 0 {
		return errNoChange
	}
	set, err := manifest.Read(f.paths, a.In)
	if err != nil {
		return unreadable(err)
	}
	s, err := a.scene(ctx, f.against)
	if err != nil {
		return err
	}
	if err := set.Check(s.kinds.Clone(), s.namespace); err != nil {
		return unreadable(err)
	}
	c := changes{
		scene: s, guard: &guard.Guard{Engine: effective.NewEngine()}, set: set, remove: f.remove,
		now: policykind.InFlight(a.now()), judged: judged,
	}
	return c.all(ctx, a)
}

func (c *changes) all(ctx context.Context, a *app) error {
	decoded, err := c.decode()
	if err != nil {
		return unreadable(err)
	}
	judged := false
	for _, d := range decoded {
		ok, err := c.one(ctx, d)
		if err != nil {
			return err
		}
		judged = judged || ok
	}
	a.tellRead(c.set, c.kinds)
	if !judged {
		a.tell("there is no policy, route or Gateway among the changes: nothing to judge")
	}
	return nil
}

// decode reads all objects of the change before any is judged, so that all
// that cannot be read is told at once.
func (c *changes) decode() ([]*manifest.Object, error) {
	kinds := c.kinds.Clone()
	var out []*manifest.Object
	var errs []error
	for _, o := range c.set.Objects {
		if o.Kind == manifest.KindCRD {
			_, err := kinds.Define(o)
			errs = append(errs, err)
			out = append(out, o)
			continue
		}
		_, err := o.Decode(kinds, c.namespace, c.now, false)
		switch {
		case err == nil:
			out = append(out, o)
		case !errors.Is(err, store.ErrKind):
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// one judges one change, or makes it if it is none to judge.
func (c *changes) one(ctx context.Context, o *manifest.Object) (judged bool, err error) {
	if o.Kind == manifest.KindCRD {
		return false, c.definition(o)
	}
	change, err := c.change(o)
	if err != nil || change.Object() == nil {
		return false, err
	}
	switch change.Object().(type) {
	case *policykind.Policy, *hierarchy.Gateway, *hierarchy.Route:
	default:
		c.view = c.view.With(store.Change{Ref: change.Object().Ref(), Object: change.After})
		return false, nil
	}
	var pairs []effective.Pair
	judgement, err := c.guard.Judge(ctx, c.view, change, func(p effective.Pair) { pairs = append(pairs, p) })
	if err != nil {
		return false, fmt.Errorf("judge %s: %w", change.Object().Ref(), err)
	}
	if c.judged(judgement, pairs) {
		c.view = judgement.After
	}
	return true, nil
}

// change returns what the manifest of an object would do; nothing for a kind
// that is not read any more.
func (c *changes) change(o *manifest.Object) (guard.Change, error) {
	if !c.kinds.Reads(o.Kind) {
		return guard.Change{}, nil // its definition was deleted before it
	}
	ref := o.Ref(c.kinds, c.namespace)
	change := guard.Change{Operation: guard.Create, Before: c.view.Get(ref)}
	created := c.now
	if p, ok := change.Before.(*policykind.Policy); ok {
		created = p.Created
	}
	switch {
	case c.remove && change.Before == nil:
		return change, fmt.Errorf("cannot delete %s: %w", ref, errNotFound)
	case c.remove:
		change.Operation = guard.Delete
		return change, nil
	case change.Before != nil:
		change.Operation = guard.Update
	}
	after, err := o.Decode(c.kinds, c.namespace, created, true) // the time is the API server's, whatever a manifest says
	change.After = after
	return change, err
}

// definition makes the kind of a CustomResourceDefinition known, or drops it.
func (c *changes) definition(o *manifest.Object) error {
	var err error
	if c.remove {
		err = c.kinds.Forget(o)
	} else {
		_, err = c.kinds.Define(o)
	}
	c.view = c.view.WithKinds(c.kinds.All())
	return err
}

func looked(j *guard.Judgement) (api.Ref, string) {
	return j.Change.Object().Ref(), string(j.Change.Operation)
}
