package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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
	guard   *guard.Guard
	set     *manifest.Set
	sources *sources
	remove  bool
	now     int64
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
		scene: s, guard: &guard.Guard{Engine: effective.NewEngine(), Kinds: known{s}}, set: set, remove: f.remove,
		now: policykind.InFlight(a.now()), judged: judged, sources: a.sources(s),
	}
	return c.all(ctx, a)
}

// known is what a guard asks about the kinds of a scene.
type known struct{ *scene }

// Profiles implements guard.Kinds.
func (k known) Profiles() []api.ProfileInForce { return k.kinds.Profiles() }

// Schema implements guard.Kinds. A cluster's definitions are not read here.
func (k known) Schema(_ context.Context, ref api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	return k.kinds.Schema(ref), nil
}

// Reread implements guard.Kinds.
func (k known) Reread(_ context.Context, v *store.View, _, _ store.Object) (*store.View, error) {
	return v, nil
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
	a.tellRefused(c.kinds)
	if !judged {
		a.tell("there is no policy, PolicyProfile, route, Gateway, ListenerSet or ReferenceGrant among the changes: nothing to judge")
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
		var err error
		switch {
		case o.Kind == manifest.KindCRD:
			err = kinds.Define(o)
		case kinds.Reads(o.Kind):
			_, err = o.Decode(kinds, c.namespace, c.now, false)
		}
		errs = append(errs, err)
		out = append(out, o)
	}
	return out, errors.Join(errs...)
}

// one judges one change, or makes it if it is none to judge.
func (c *changes) one(ctx context.Context, o *manifest.Object) (judged bool, err error) {
	switch {
	case o.Kind == manifest.KindCRD:
		return false, c.definition(ctx, o)
	case o.Kind == policykind.KindProfile:
		return true, c.profile(ctx, o)
	case !c.kinds.Reads(o.Kind):
		c.sources.made(o.Ref(c.kinds, c.namespace), o, c.now, c.remove) // its kind may be known later
		return false, nil
	}
	change, err := c.change(o)
	if err != nil {
		return false, err
	}
	made := func() { c.sources.made(change.Object().Ref(), o, created(change, c.now), c.remove) }
	if !isJudged(change.Object()) {
		c.view = c.view.With(store.Change{Ref: change.Object().Ref(), Object: change.After})
		made()
		return false, nil
	}
	var pairs []effective.Pair
	judgement, err := c.ask(ctx, change, func(p effective.Pair) { pairs = append(pairs, p) })
	if err != nil {
		return false, err
	}
	if c.judged(judgement, pairs) {
		c.view = judgement.After
		made()
	}
	return true, nil
}

func (c *changes) ask(ctx context.Context, change guard.Change, observe func(effective.Pair)) (*guard.Judgement, error) {
	judgement, err := c.guard.Judge(ctx, c.view, change, observe)
	if err != nil {
		return nil, fmt.Errorf("judge %s: %w", change.Object().Ref(), err)
	}
	return judgement, nil
}

// isJudged reports whether the admission server judges writes of an object.
func isJudged(o store.Object) bool {
	switch o.(type) {
	case *policykind.Policy, *hierarchy.Gateway, *hierarchy.ListenerSet, *hierarchy.Route, *hierarchy.Grant:
		return true
	default:
		return false
	}
}

// created returns the creation time of what is changed: a policy's own, else
// now.
func created(change guard.Change, now int64) int64 {
	if p, ok := change.Before.(*policykind.Policy); ok {
		return p.Created
	}
	return now
}

// change returns what the manifest of an object would do.
func (c *changes) change(o *manifest.Object) (guard.Change, error) {
	ref := o.Ref(c.kinds, c.namespace)
	change := guard.Change{Operation: guard.Create, Before: c.view.Get(ref)}
	if change.Before != nil {
		change.Operation = guard.Update
	}
	if c.remove {
		return change, c.toDelete(ref, &change)
	}
	// the time is the API server's, whatever a manifest says
	after, err := o.Decode(c.kinds, c.namespace, created(change, c.now), true)
	change.After = after
	return change, err
}

func (c *changes) toDelete(ref api.Ref, change *guard.Change) error {
	change.Operation = guard.Delete
	if change.Before == nil {
		return fmt.Errorf("cannot delete %s: %w", ref, errNotFound)
	}
	return nil
}

func looked(j *guard.Judgement) (api.Ref, string) {
	return j.Change.Object().Ref(), string(j.Change.Operation)
}
