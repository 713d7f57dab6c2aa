package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// changeFlags are the flags that check and diff share.
type changeFlags struct {
	paths, against      []string
	revisions           revisionFlags
	remove, mayOverride bool
	// blastRadius is the number of paths that one change may affect without
	// acknowledgement. 0 means no limit.
	blastRadius int
	// maxMatches is the number of matches that the routes of one namespace may have on
	// one hostname. 0 means no limit.
	maxMatches int
	// checkRights is set if the command denies changes, so that the rights of the
	// user matter.
	checkRights bool
}

// changeOptions are those of check and diff.
type changeOptions struct {
	*app
	changeFlags
	out reportFlags
}

// add adds the flags to a command without arguments: run is what it does with the change.
func (o *changeOptions) add(cmd *cobra.Command, formats []printers.Format, run func(context.Context, *change) error) {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := o.readChange(cmd.Context(), o.changeFlags)
		if err != nil {
			return o.checkOnCluster(cmd.Context(), err, c)
		}
		return run(cmd.Context(), c)
	}
	o.out.add(cmd, &o.redact, formats)
	f := &o.changeFlags
	pathsFlag(cmd, &f.paths, "manifests with the change")
	cmd.Flags().StringArrayVar(&f.revisions.from, "from", nil, "with --to: the change is the difference between these manifests and those of --to (repeatable)")
	cmd.Flags().StringArrayVar(&f.revisions.to, "to", nil, "with --from: the manifests after the change (repeatable)")
	cmd.Flags().StringArrayVar(&f.against, "against", nil, "evaluate the change against these manifests instead of the cluster (repeatable)")
	cmd.Flags().BoolVar(&f.remove, "delete", false, "treat the change as the deletion of its objects")
	cmd.Flags().BoolVar(&f.mayOverride, "may-override", false, "evaluate as a user who is allowed to remove overrides; requires --against or --from (no effect on diff, which denies nothing)")
}

var errStdinTwice = errors.New("only one of them can be - for stdin")

func (f *changeFlags) validate() error {
	switch {
	case f.revisions.isSet() && len(f.paths)+len(f.against) > 0, f.revisions.isSet() && f.remove:
		return errRevisionFlags
	case f.revisions.isSet() && (len(f.revisions.from) == 0 || len(f.revisions.to) == 0):
		return errOneRevision
	case !f.revisions.isSet() && len(f.paths) == 0:
		return errNoChange
	case readsTwice(f.revisions.from, f.revisions.to):
		return fmt.Errorf("invalid --from and --to: %w", errStdinTwice)
	case readsTwice(f.paths, f.against):
		return fmt.Errorf("invalid --filename and --against: %w", errStdinTwice)
	case f.mayOverride && len(f.against) == 0 && !f.revisions.isSet():
		return errors.New("invalid --may-override: requires --against or --from; on a cluster, your own rights or those of --as apply")
	case f.blastRadius < 0:
		return errors.New("invalid --blast-radius-limit: must not be negative")
	case f.maxMatches < 0:
		return errors.New("invalid --max-matches: must not be negative")
	default:
		return nil
	}
}

// readsTwice reports whether two lists of paths both have standard input, of which the
// second would read nothing.
func readsTwice(a, b []string) bool {
	return slices.Contains(a, manifest.Stdin) && slices.Contains(b, manifest.Stdin)
}

// step is one write of a change: the manifest is applied, or its object is deleted.
type step struct {
	object *manifest.Object
	remove bool
	// isNew is set if the first of two revisions does not have the object.
	isNew bool
}

// evaluatedStep is the result of one step. The decision is nil if no effective policy
// depends on the object.
type evaluatedStep struct {
	step
	// stored is the object as the API server would store it, and old the one that it
	// replaces; nil if there is none, or it is on a cluster.
	stored, old *manifest.Object
	decision    *guard.Decision
	pairs       []effective.Pair // the paths that differ
	// final is set if the step cannot be applied, or needs not be.
	final bool
	// sequence is the place of the step in the order in which the steps of two revisions
	// were applied; 0 if they were in the order of the result.
	sequence int
	// redacted is set if values of policies are left out (redactStep).
	redacted bool

	kindChange *kindChange
}

// changeEvaluator evaluates the steps of a change in order, each on top of those
// before it that took effect.
type changeEvaluator struct {
	*source
	app   *app
	guard *guard.Guard
	user  *authenticationv1.UserInfo // nil if not known
	raw   *rawObjects
	now   int64
	// definitions are those of the cluster that have been read, nil for kinds without one.
	definitions map[api.PolicyKind]*customresource.Kind
	// deletedKinds were deleted by earlier objects of the change, with all their objects.
	deletedKinds map[api.PolicyKind]bool
}

// change is a change that was read, and what it is applied to.
type change struct {
	flags  changeFlags
	source *source
	steps  []step
	set    *manifest.Set // nil for a difference of revisions, whose steps have an order of their own
}

// newChange returns the change of the objects of a set, in their order.
func newChange(f changeFlags, s *source, set *manifest.Set) *change {
	c := &change{flags: f, source: s, set: set}
	for _, o := range set.Objects {
		c.steps = append(c.steps, step{object: o, remove: f.remove})
	}
	return c
}

// readChange reads the change of the flags. If what it is applied to cannot be read, the
// change has no source and no steps.
func (r *reader) readChange(ctx context.Context, f changeFlags) (*change, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if f.revisions.isSet() {
		s, steps, err := r.readRevisions(ctx, f.revisions)
		return &change{flags: f, source: s, steps: steps}, err
	}
	set, err := r.readManifests(f.paths)
	if err != nil {
		return nil, manifestErrors(err)
	}
	s, err := r.loadSource(ctx, f.against)
	if err != nil {
		return &change{flags: f, set: set}, err
	}
	return newChange(f, s, set), nil
}

// allowsAll lets every step of a change take effect.
func allowsAll(*guard.Decision) bool { return true }

// evaluate evaluates a change, and returns the steps that affect effective policies.
// allows reports whether a step takes effect for those after it.
func (a *app) evaluate(ctx context.Context, c *change, allows func(*guard.Decision) bool) ([]evaluatedStep, error) {
	after := *c
	after.source = new(*c.source) // that of the result afterwards
	steps, err := a.evaluateIn(ctx, &after, allows)
	for i := range steps {
		if a.redact {
			redactStep(&steps[i])
		}
	}
	a.warnControllers(after.source.view)
	return steps, err
}

// evaluateIn is evaluate, and makes the source that of the result.
func (a *app) evaluateIn(ctx context.Context, c *change, allows func(*guard.Decision) bool) ([]evaluatedStep, error) {
	e, err := a.newEvaluator(ctx, c.flags, c.source)
	if err != nil {
		return nil, err
	}
	if c.set == nil {
		order := applyOrder{evaluator: e, steps: c.steps, allows: allows}
		return order.run(ctx)
	}
	if err := e.checkSet(ctx, c); err != nil {
		return nil, err
	}
	var out []evaluatedStep
	var invalid []error
	for _, next := range c.steps {
		result, err := e.evaluateStep(ctx, next)
		switch {
		case manifest.IsInvalid(err):
			invalid = append(invalid, err)
		case err != nil:
			return nil, err
		case result.decision != nil:
			out = append(out, result)
			if allows(result.decision) {
				e.apply(result)
			}
		}
	}
	if len(invalid) > 0 {
		return nil, manifestErrors(errors.Join(invalid...))
	}
	out = slices.DeleteFunc(out, func(s evaluatedStep) bool { return s.isNotRead() && e.kinds.Reads(s.object.Kind) })
	a.reportRead(c.set, e.kinds)
	a.warnRejectedProfiles(e.kinds)
	if len(out) == 0 {
		a.infof("no object in the change affects effective policies")
	}
	return out, nil
}

// isNotRead reports whether all that is found about the step is that its kind is not read:
// a later step may change that.
func (e *evaluatedStep) isNotRead() bool {
	return e.final && len(e.decision.Denials) == 0 && !slices.ContainsFunc(e.decision.Warnings, func(f guard.Finding) bool { return f.Code != api.ReasonNotRead })
}

func (a *app) newEvaluator(ctx context.Context, f changeFlags, s *source) (*changeEvaluator, error) {
	rights, user, err := a.authorization(ctx, s, f)
	if err != nil {
		return nil, err
	}
	raw, err := a.newRawObjects(s)
	if err != nil {
		return nil, err
	}
	c := &changeEvaluator{
		source: s, app: a, user: user, now: s.timeOfWrite(a.now()), raw: raw,
		definitions: make(map[api.PolicyKind]*customresource.Kind), deletedKinds: make(map[api.PolicyKind]bool),
	}
	c.guard = &guard.Guard{Engine: effective.NewEngine(), Permissions: rights, BlastRadius: f.blastRadius, MatchLimit: f.maxMatches, ReadsAll: true,
		OmitCounts: a.redact}
	return c, nil
}

// checkSet checks what the objects of a change are together, before any is evaluated.
func (c *changeEvaluator) checkSet(ctx context.Context, of *change) error {
	kinds := c.kinds.Clone()
	_ = of.set.Define(kinds) // errors are those of steps
	if err := of.set.Duplicates(kinds, c.namespace); err != nil {
		return manifestErrors(err)
	}
	if of.flags.remove {
		var errs []error
		for _, o := range of.set.Objects {
			if kinds.Reads(o.Kind) {
				_, err := o.Decode(kinds, c.namespace, c.now, false)
				errs = append(errs, err)
			}
		}
		if err := errors.Join(errs...); err != nil {
			return manifestErrors(err)
		}
		return nil
	}
	unvalidated := slices.DeleteFunc(unvalidatedKinds(of.set.Objects, kinds), func(k api.PolicyKind) bool {
		return c.definition(ctx, kinds, k) != nil
	})
	return c.app.warnUnvalidated(unvalidated, "to the manifests")
}

// evaluateStep evaluates one step. The step of an object that effective policies do not
// depend on takes effect at once; that of another one when it is applied.
func (c *changeEvaluator) evaluateStep(ctx context.Context, s step) (evaluatedStep, error) {
	out := evaluatedStep{step: s}
	ref := s.object.Ref(c.kinds, c.namespace)
	if c.isDeleted(s) { // with its namespace or kind
		if !s.remove && c.deletedKinds[s.object.Kind] {
			out.stored, out.decision, out.final = s.object, c.notServed(ref, s.object), true
		}
		return out, nil
	}
	if c.raw.stored == nil {
		out.old = c.raw.objects[ref].object
	}
	stored, rejection, err := c.storeChange(ctx, s)
	out.stored = stored.Object
	if err != nil || rejection != nil {
		out.decision, out.final = rejection, true
		return out, err
	}
	change, kinds, err := c.change(ctx, out.stored, s.remove)
	if err != nil {
		return out, err
	}
	if change.Object() == nil {
		out.decision, out.final = c.unevaluated(ref, stored, s.remove), true
		return out, nil
	}
	out.kindChange = kinds
	if out.decision, out.pairs, err = c.evaluate(ctx, change, kinds); err != nil {
		return out, err
	}
	addWarnings(out.decision, stored.Problems)
	return out, nil
}

// isDeleted reports whether an earlier step deleted the namespace or the kind of an object.
func (c *changeEvaluator) isDeleted(s step) bool {
	return c.raw.deletedNamespaces[s.object.Ref(c.kinds, c.namespace).Namespace] || c.deletedKinds[s.object.Kind]
}

// apply updates the view, the kinds and the raw objects after a step that takes
// effect.
func (c *changeEvaluator) apply(e evaluatedStep) {
	if e.final {
		return
	}
	ref := e.decision.Change.Object().Ref()
	c.raw.record(ref, e.stored, creationTime(e.decision.Change, c.now), e.remove)
	c.view = e.decision.After
	if e.kindChange != nil {
		c.kinds = e.kindChange.kinds
		if e.kindChange.deletedKind != nil {
			c.deletedKinds[*e.kindChange.deletedKind] = true
		}
	}
	if e.remove && e.object.Kind == kindNamespace {
		c.raw.deletedNamespaces[ref.Name] = true
	}
}

// evaluate evaluates a change, and what it changes about kinds, nil for nothing.
func (c *changeEvaluator) evaluate(ctx context.Context, change guard.Change, kinds *kindChange) (*guard.Decision, []effective.Pair, error) {
	var pairs []effective.Pair
	observe := func(p effective.Pair) { pairs = append(pairs, p) }
	decision, err := c.guard.Evaluate(ctx, c.view, change, observe)
	if err == nil && kinds != nil {
		decision.After, err = c.reread(ctx, decision.After, kinds.kinds)
	}
	if err == nil && kinds != nil && len(pairs) == 0 && !slices.Equal(c.view.Kinds(), decision.After.Kinds()) {
		err = c.compareKinds(ctx, decision.After, observe)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("evaluate %s: %w", change.Object().Ref(), err)
	}
	return decision, pairs, nil
}

func (e *evaluatedStep) objectAndOperation() (api.Ref, string) {
	return e.decision.Change.Object().Ref(), string(e.decision.Change.Operation)
}
