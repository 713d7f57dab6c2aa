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

// changeFlags are the flags that check and diff share.
type changeFlags struct {
	paths, against      []string
	remove, mayOverride bool
	// blastRadius is the number of paths that one change may affect without
	// acknowledgement. 0 means no limit.
	blastRadius int
	// checkRights is set if the command denies changes, so that the rights of the
	// user matter.
	checkRights bool
}

func (f *changeFlags) add(cmd *cobra.Command) {
	pathsFlag(cmd, &f.paths, "manifests with the change")
	_ = cmd.MarkFlagRequired("filename") // it fails for a flag that does not exist
	cmd.Flags().StringArrayVar(&f.against, "against", nil, "evaluate the change against these manifests instead of the cluster (repeatable)")
	cmd.Flags().BoolVar(&f.remove, "delete", false, "treat the change as the deletion of its objects")
	cmd.Flags().BoolVar(&f.mayOverride, "may-override", false, "evaluate as a user who is allowed to remove overrides; requires --against (no effect on diff, which denies nothing)")
}

var (
	errMayOverride = errors.New("invalid --may-override: requires --against; on a cluster, your own rights or those of --as apply")
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

// changeEvaluator evaluates the objects of a change in order, each on top of
// those before it that took effect.
type changeEvaluator struct {
	*source
	guard  *guard.Guard
	user   *authenticationv1.UserInfo // nil if not known
	set    *manifest.Set
	raw    *rawObjects
	remove bool
	now    int64
	// kindChange is what the object being evaluated changes about kinds; nil if
	// it is neither a PolicyProfile nor a CustomResourceDefinition.
	kindChange *kindChange
	// deletedNamespaces and deletedKinds were deleted by earlier objects of the
	// change, with all objects in them.
	deletedNamespaces map[string]bool
	deletedKinds      map[api.PolicyKind]bool
	// evaluated is called with each decision and the paths that differ. It
	// reports whether the change takes effect for the objects after it.
	evaluated func(*guard.Decision, []effective.Pair) bool
}

// evaluateChanges evaluates the objects that the flags name.
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
		return &unlistedError{err, set}
	}
	return a.evaluateSet(ctx, f, s, set, evaluated)
}

// evaluateSet evaluates the objects of a set. The source is that of the result
// afterwards.
func (a *app) evaluateSet(ctx context.Context, f changeFlags, s *source, set *manifest.Set, evaluated func(*guard.Decision, []effective.Pair) bool) error {
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
	c.guard = &guard.Guard{Engine: effective.NewEngine(), KindReader: guardKinds{&c, a}, Permissions: rights, BlastRadius: f.blastRadius}
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
		a.infof("no object in the change affects effective policies")
	}
	return nil
}

// decodeAll decodes all objects of the change before any is evaluated, so that
// all errors are reported together.
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

// evaluateObject evaluates the change of one object, and applies it if it takes
// effect. An object that effective policies do not depend on is applied without
// evaluation.
func (c *changeEvaluator) evaluateObject(ctx context.Context, o *manifest.Object) (evaluated bool, err error) {
	ref := o.Ref(c.kinds, c.namespace)
	if c.deletedNamespaces[ref.Namespace] || c.deletedKinds[o.Kind] {
		return false, nil // already deleted with its namespace or kind
	}
	change, err := c.change(ctx, o)
	if err != nil {
		return false, err
	}
	if change.Object() == nil {
		c.raw.record(ref, o, c.now, c.remove) // a later object may define its kind
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

// apply updates the view, the kinds and the raw objects after a change that
// takes effect.
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

// evaluate evaluates a change. A deletion carries no annotations, so the
// acknowledgement on the stored object counts. It is read only if the blast
// radius denies the deletion.
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
		return nil, nil, fmt.Errorf("evaluate %s: %w", change.Object().Ref(), err)
	}
	return decision, pairs, nil
}

func objectAndOperation(j *guard.Decision) (api.Ref, string) {
	return j.Change.Object().Ref(), string(j.Change.Operation)
}
