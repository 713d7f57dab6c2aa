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
	checkRights bool
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

func (f *changeFlags) validate() error {
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
type changeEvaluator struct {
	*source
	guard  *guard.Guard
	user   *authenticationv1.UserInfo // nil if nobody is known
	set    *manifest.Set
	raw    *rawObjects
	remove bool
	now    int64
	// next is how the kinds are read after the change that is being judged, nil
	// if it does not change that.
	kindChange *kindChange
	// emptied are the namespaces, and dropped the kinds, that are gone with all
	// that was in them.
	deletedNamespaces map[string]bool
	deletedKinds      map[api.PolicyKind]bool
	// judged is called with each judgement and the paths that differ; it says
	// whether the change is to be made.
	evaluated func(*guard.Decision, []effective.Pair) bool
}

// judge judges all changes of the flags.
func (a *app) evaluateChanges(ctx context.Context, f changeFlags, evaluated func(*guard.Decision, []effective.Pair) bool) error {
	if err := f.validate(); err != nil {
		return err
	}
	set, err := manifest.Read(f.paths, a.In)
	if err != nil {
		return manifestErrors(err)
	}
	s, err := a.loadSource(ctx, f.against)
	if err != nil {
		return err
	}
	if err := set.Check(s.kinds.Clone(), s.namespace); err != nil {
		return manifestErrors(err)
	}
	rights, user, err := a.authorization(ctx, s, f)
	if err != nil {
		return err
	}
	c := changeEvaluator{
		source: s, set: set, remove: f.remove, user: user,
		now: policykind.InFlight(a.now()), evaluated: evaluated, raw: a.newRawObjects(s),
		deletedNamespaces: make(map[string]bool), deletedKinds: make(map[api.PolicyKind]bool),
	}
	c.guard = &guard.Guard{Engine: effective.NewEngine(), Kinds: guardKinds{&c, a}, Rights: rights, BlastRadius: f.blastRadius}
	return c.run(ctx, a)
}

func (c *changeEvaluator) run(ctx context.Context, a *app) error {
	if err := c.decodeAll(); err != nil {
		return manifestErrors(err)
	}
	evaluated := false
	for _, o := range c.set.Objects {
		ok, err := c.evaluateObject(ctx, o)
		if err != nil {
			return err
		}
		evaluated = evaluated || ok
	}
	a.reportRead(c.set, c.kinds)
	a.warnRejectedProfiles(c.kinds)
	if !evaluated {
		a.infof("effective policies depend on nothing that is changed: nothing to judge")
	}
	return nil
}

// decode reads all objects of the change before any is judged, so that all
// that cannot be read is told at once.
func (c *changeEvaluator) decodeAll() error {
	kinds := c.kinds.Clone()
	var errs []error
	for _, o := range c.set.Objects {
		var err error
		switch {
		case o.Kind == manifest.KindCRD:
			err = kinds.AddDefinition(o)
		case kinds.Reads(o.Kind):
			_, err = o.Decode(kinds, c.namespace, c.now, false)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// one judges one change, or makes it if it is none to judge.
func (c *changeEvaluator) evaluateObject(ctx context.Context, o *manifest.Object) (evaluated bool, err error) {
	ref := o.Ref(c.kinds, c.namespace)
	if c.deletedNamespaces[ref.Namespace] || c.deletedKinds[o.Kind] {
		return false, nil // it is gone already
	}
	change, err := c.change(ctx, o)
	if err != nil {
		return false, err
	}
	if change.Object() == nil {
		c.raw.record(ref, o, c.now, c.remove) // its kind may be known later
		return false, nil
	}
	decision, pairs, err := c.evaluate(ctx, change)
	if err != nil {
		return false, err
	}
	if c.evaluated(decision, pairs) {
		c.apply(decision, o)
	}
	return true, nil
}

// apply makes a change that was judged.
func (c *changeEvaluator) apply(j *guard.Decision, o *manifest.Object) {
	ref := j.Change.Object().Ref()
	c.raw.record(ref, o, creationTime(j.Change, c.now), c.remove)
	c.view = j.After
	if c.kindChange != nil {
		c.kinds = c.kindChange.kinds
		if c.kindChange.deletedKind != nil {
			c.deletedKinds[*c.kindChange.deletedKind] = true
		}
	}
	if c.remove && o.Kind == kindNamespace {
		c.deletedNamespaces[ref.Name] = true
		c.raw.deletedNamespaces[ref.Name] = true
	}
}

// ask judges a change. A deletion has no annotation of its own: that of the
// object counts, which is looked up where it matters.
func (c *changeEvaluator) evaluate(ctx context.Context, change guard.Change) (*guard.Decision, []effective.Pair, error) {
	decision, pairs, err := c.evaluateOnce(ctx, change)
	if err != nil || change.Operation != guard.Delete || !slices.ContainsFunc(decision.Denials, exceedsBlastRadius) {
		return decision, pairs, err
	}
	stored, err := c.raw.get(ctx, c.kinds, change.Object().Ref())
	if err != nil || stored == nil || stored.Annotation(api.AnnotationAcknowledge) == "" {
		return decision, pairs, err
	}
	change.Acknowledged = stored.Annotation(api.AnnotationAcknowledge)
	return c.evaluateOnce(ctx, change)
}

func exceedsBlastRadius(f guard.Finding) bool { return f.Code == api.ReasonBlastRadius }

func (c *changeEvaluator) evaluateOnce(ctx context.Context, change guard.Change) (*guard.Decision, []effective.Pair, error) {
	var pairs []effective.Pair
	decision, err := c.guard.Evaluate(ctx, c.view, change, func(p effective.Pair) { pairs = append(pairs, p) })
	if err != nil {
		return nil, nil, fmt.Errorf("judge %s: %w", change.Object().Ref(), err)
	}
	return decision, pairs, nil
}

func objectAndOperation(j *guard.Decision) (api.Ref, string) {
	return j.Change.Object().Ref(), string(j.Change.Operation)
}
