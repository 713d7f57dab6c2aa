package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

// changeFlags are the flags of the commands that look at changes.
type changeFlags struct {
	paths, against      []string
	remove, mayOverride bool
	// blastRadius is the most paths that one change may change unacknowledged.
	blastRadius int
	// denies tells that a denial matters to the command, and so who may do what.
	denies bool
}

func (f *changeFlags) add(cmd *cobra.Command) {
	pathsFlag(cmd, &f.paths, "the change: manifests as they would be applied")
	_ = cmd.MarkFlagRequired("filename") // it fails for a flag that does not exist
	cmd.Flags().StringArrayVar(&f.against, "against", nil, "judge it on top of these manifests instead of the cluster (repeatable)")
	cmd.Flags().BoolVar(&f.remove, "delete", false, "the objects of the change are deleted")
	cmd.Flags().BoolVar(&f.mayOverride, "may-override", false, "with --against, judge as for someone who may remove overrides (diff denies nothing anyway)")
}

var (
	errMayOverride = errors.New("invalid --may-override: requires --against: on a cluster your own rights count, or those of the user of --as")
	errBlastRadius = errors.New("invalid --blast-radius-limit: must not be negative")
)

func (f *changeFlags) check() error {
	switch {
	case f.mayOverride && len(f.against) == 0:
		return errMayOverride
	case f.blastRadius < 0:
		return errBlastRadius
	default:
		return nil
	}
}

// changes are judged one after another, each on top of those before it.
type changes struct {
	*scene
	guard   *guard.Guard
	user    *authenticationv1.UserInfo // nil if nobody is known
	set     *manifest.Set
	sources *sources
	remove  bool
	now     int64
	// next is how the kinds are read after the change that is being judged, nil
	// if it does not change that.
	next *readings
	// emptied are the namespaces, and dropped the kinds, that are gone with all
	// that was in them.
	emptied map[string]bool
	dropped map[api.PolicyKind]bool
	// judged is called with each judgement and the paths that differ; it says
	// whether the change is to be made.
	judged func(*guard.Decision, []effective.Pair) bool
}

// judge judges all changes of the flags.
func (a *app) judge(ctx context.Context, f changeFlags, judged func(*guard.Decision, []effective.Pair) bool) error {
	if err := f.check(); err != nil {
		return err
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
	rights, user, err := a.authority(ctx, s, f)
	if err != nil {
		return err
	}
	c := changes{
		scene: s, set: set, remove: f.remove, user: user,
		now: policykind.InFlight(a.now()), judged: judged, sources: a.sources(s),
		emptied: make(map[string]bool), dropped: make(map[api.PolicyKind]bool),
	}
	c.guard = &guard.Guard{Engine: effective.NewEngine(), Kinds: known{&c, a}, Rights: rights, BlastRadius: f.blastRadius}
	return c.all(ctx, a)
}

func (c *changes) all(ctx context.Context, a *app) error {
	if err := c.decode(); err != nil {
		return unreadable(err)
	}
	judged := false
	for _, o := range c.set.Objects {
		ok, err := c.one(ctx, o)
		if err != nil {
			return err
		}
		judged = judged || ok
	}
	a.tellRead(c.set, c.kinds)
	a.tellRefused(c.kinds)
	if !judged {
		a.tell("effective policies depend on nothing that is changed: nothing to judge")
	}
	return nil
}

// decode reads all objects of the change before any is judged, so that all
// that cannot be read is told at once.
func (c *changes) decode() error {
	kinds := c.kinds.Clone()
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
	}
	return errors.Join(errs...)
}

// one judges one change, or makes it if it is none to judge.
func (c *changes) one(ctx context.Context, o *manifest.Object) (judged bool, err error) {
	ref := o.Ref(c.kinds, c.namespace)
	if c.emptied[ref.Namespace] || c.dropped[o.Kind] {
		return false, nil // it is gone already
	}
	change, err := c.change(ctx, o)
	if err != nil {
		return false, err
	}
	if change.Object() == nil {
		c.sources.made(ref, o, c.now, c.remove) // its kind may be known later
		return false, nil
	}
	judgement, pairs, err := c.ask(ctx, change)
	if err != nil {
		return false, err
	}
	if c.judged(judgement, pairs) {
		c.apply(judgement, o)
	}
	return true, nil
}

// apply makes a change that was judged.
func (c *changes) apply(j *guard.Decision, o *manifest.Object) {
	ref := j.Change.Object().Ref()
	c.sources.made(ref, o, created(j.Change, c.now), c.remove)
	c.view = j.After
	if c.next != nil {
		c.kinds = c.next.kinds
		if c.next.dropped != nil {
			c.dropped[*c.next.dropped] = true
		}
	}
	if c.remove && o.Kind == kindNamespace {
		c.emptied[ref.Name] = true
		c.sources.emptied[ref.Name] = true
	}
}

// ask judges a change. A deletion has no annotation of its own: that of the
// object counts, which is looked up where it matters.
func (c *changes) ask(ctx context.Context, change guard.Change) (*guard.Decision, []effective.Pair, error) {
	judgement, pairs, err := c.askOnce(ctx, change)
	if err != nil || change.Operation != guard.Delete || !slices.ContainsFunc(judgement.Denials, tooFar) {
		return judgement, pairs, err
	}
	stored, err := c.sources.stored(ctx, c.kinds, change.Object().Ref())
	if err != nil || stored == nil || stored.Annotation(api.AnnotationAcknowledge) == "" {
		return judgement, pairs, err
	}
	change.Acknowledged = stored.Annotation(api.AnnotationAcknowledge)
	return c.askOnce(ctx, change)
}

func tooFar(f guard.Finding) bool { return f.Code == api.ReasonBlastRadius }

func (c *changes) askOnce(ctx context.Context, change guard.Change) (*guard.Decision, []effective.Pair, error) {
	var pairs []effective.Pair
	judgement, err := c.guard.Evaluate(ctx, c.view, change, func(p effective.Pair) { pairs = append(pairs, p) })
	if err != nil {
		return nil, nil, fmt.Errorf("judge %s: %w", change.Object().Ref(), err)
	}
	return judgement, pairs, nil
}

func looked(j *guard.Decision) (api.Ref, string) {
	return j.Change.Object().Ref(), string(j.Change.Operation)
}
