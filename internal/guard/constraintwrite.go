package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// constraintWrite checks the write of a constraint.
type constraintWrite struct{ *write }

// check checks the write of a constraint: whether it is valid, where it denies
// less than before, and which existing paths violate it. Existing violations are reported,
// and do not deny the write.
func (ev constraintWrite) check(ctx context.Context) error {
	was, _ := ev.change.Before.(*constraint.Constraint)
	c, ok := ev.change.After.(*constraint.Constraint)
	if !ok || ev.change.Owner != "" {
		if err := ev.checkRelaxed(ctx, was, nil); err != nil || !ok {
			return err
		}
	}
	if c.Invalid != nil {
		ev.reportInvalid(c, c.Invalid, was != nil && was.Invalid != nil)
		return nil
	}
	ev.checkValidationLimit(c)
	kind := ev.after.Kind(c.PolicyKind())
	if kind == nil {
		ev.warn(api.ReasonNotRead, Finding{Advice: "check the group and the kind; kubectl overrule profiles lists the policy kinds"},
			"%s has no effect until policy kind %s is installed", c.Ref(), c.PolicyKind())
	} else if err := ev.reportAbsentTargets(ctx, c); err != nil {
		return err
	} else if fault, err := ev.checkSchema(c, was, kind); err != nil || fault {
		return err
	}
	if err := ev.checkRelaxed(ctx, was, c); err != nil || kind == nil {
		return err
	}
	return ev.checkExistingPaths(ctx, c)
}

// reportInvalid denies a constraint that is invalid; one that was invalid before stays
// editable.
func (ev constraintWrite) reportInvalid(c *constraint.Constraint, why error, before bool) {
	var faults []string
	all := []error{why}
	if many, ok := errors.AsType[interface {
		error
		Errors() []error
	}](why); ok {
		all = many.Errors()
	}
	for _, fault := range all {
		faults = append(faults, fault.Error())
	}
	ev.report(api.ReasonInvalid, newly(before), Finding{What: fmt.Sprintf("%s is invalid: %s", c.Ref(), strings.Join(faults, "; "))})
}

// checkSchema checks a constraint against the schema of its kind. It reports
// whether the constraint is invalid.
func (ev constraintWrite) checkSchema(c, was *constraint.Constraint, kind *policykind.Kind) (bool, error) {
	schema, err := ev.after.KindConfig().Schema(kind.Ref())
	if err != nil {
		return false, err
	}
	shape := constraint.Shape{Schema: schema, Content: contentPaths(kind), List: kind.SameTarget == api.Collect, Named: kind.Named != nil}
	fault := c.Check(shape)
	if fault == nil {
		return false, nil
	}
	before := was != nil && was.PolicyKind() == c.PolicyKind() && (was.Invalid != nil || was.Check(shape) != nil)
	ev.reportInvalid(c, fault, before)
	return true, nil
}

// contentPaths returns the field paths of an object of a kind that effective specs are
// made of.
func contentPaths(k *policykind.Kind) [][]string {
	content := k.Layout().Content
	out := [][]string{content}
	for _, block := range slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides) {
		out = append(out, append(slices.Clip(content), block))
	}
	return out
}

// checkExistingPaths reports which existing paths violate a constraint.
func (ev constraintWrite) checkExistingPaths(ctx context.Context, c *constraint.Constraint) error {
	now := ev.guard.newEvaluation(ev.after, nil) // no write is evaluated
	undecided := 0
	paths, err := ev.pathsOf(ctx, ev.after, c, func(e *effective.Effective, level constraint.Level, budget *effective.Budget) (string, bool, error) {
		now.budget = budget
		found, err := now.requirements.evaluateConstraint(c, level, now.requirements.inputs(effective.Pair{After: e}).after, budget)
		if found.Undecided {
			undecided++
		}
		if err != nil || len(found.Unmet) == 0 {
			return "", false, err
		}
		return fmt.Sprintf(" (%s)", found.Unmet[0].Message), true, nil
	})
	if err != nil {
		return err
	}
	ev.reportViolatingPaths(c, paths)
	if ref := c.Ref(); undecided > 0 {
		ev.warn(api.ReasonNotRead, Finding{Policy: ref, Advice: "use origins instead, or ask for a ClusterPolicyConstraint"},
			"%s is not fully evaluated on %s: it needs values of policies of other namespaces, which it is not allowed to read", ref, api.Plural(undecided, "path"))
	}
	return nil
}

func (ev constraintWrite) reportViolatingPaths(c *constraint.Constraint, paths constrainedPaths) {
	ref := c.Ref()
	f := Finding{Policy: ref}
	switch {
	case paths.count == 0 && !paths.more:
		return
	case paths.count == 0:
		f.What = fmt.Sprintf("not all paths were checked, there are too many: none of those checked violates %s", ref)
	default:
		text, violate := api.Plural(paths.count, "path"), "violate"
		if paths.more {
			text = "at least " + text
		}
		if paths.count == 1 {
			violate = "violates"
		}
		f.What = fmt.Sprintf("%s already %s %s: %s", text, violate, ref, paths)
		if paths.count > 1 {
			f.Short = fmt.Sprintf("%s already violate %s, such as %s", text, ref, paths.named[0])
		}
		f.Advice = "existing violations are allowed: only writes that make one worse are denied; kubectl overrule violations lists them"
	}
	ev.report(api.ReasonRequirementUnmet, api.Warn, f)
}

// reportAbsentTargets warns of targets that a constraint names and that do not exist: no
// write is checked there.
func (ev constraintWrite) reportAbsentTargets(ctx context.Context, c *constraint.Constraint) error {
	if err := ev.readConstraintTargets(ctx, c); err != nil {
		return err
	}
	absent, whole := ev.after.Absent(c)
	if len(absent) == 0 {
		return nil
	}
	names, on := make([]string, len(absent)), " on targets that do not exist"
	for i, n := range absent {
		names[i] = n.String()
	}
	if whole {
		on = ": none of its targets exists"
	}
	ev.warn(api.ReasonTargetNotFound, Finding{Advice: "check the target's kind, name and section, or create it", Field: "spec.targets"},
		"the constraint has no effect%s: %s", on, strings.Join(names, ", "))
	return nil
}

// checkRelaxed warns of a constraint that would deny less, with the paths that it applies
// to; now is nil if it is removed. Permission to do that is a matter of RBAC.
func (ev constraintWrite) checkRelaxed(ctx context.Context, was, now *constraint.Constraint) error {
	if was == nil || !was.Relaxes(now) || ev.before.Kind(was.PolicyKind()) == nil {
		return nil
	}
	paths, err := ev.pathsOf(ctx, ev.before, was, func(*effective.Effective, constraint.Level, *effective.Budget) (string, bool, error) {
		return "", true, nil
	})
	if err != nil || paths.count == 0 && !paths.more {
		return err
	}
	ref, on := was.Ref(), api.Plural(paths.count, "path")
	list := ": " + paths.String()
	if paths.more { // counting took too long
		on, list = "very many paths", ""
	}
	ev.warn(api.ReasonRequirementUnmet, Finding{Policy: ref, Short: fmt.Sprintf("%s would deny less on %s", ref, on)},
		"%s applies to %s, and would no longer deny some writes there%s", ref, on, list)
	return nil
}

// reportRemovedConstraints warns of the constraints that are removed with their
// definition.
func (ev constraintWrite) reportRemovedConstraints(ctx context.Context, after *snapshot.View) error {
	for _, kind := range []api.PolicyKind{constraint.Kind, constraint.ClusterKind} {
		for o := range ev.before.Objects(kind) {
			if c, ok := o.(*constraint.Constraint); ok && after.Get(o.Ref()) == nil {
				if err := ev.checkRelaxed(ctx, c, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// constrainedPaths are paths of a constraint, of which the first are named, each once: those
// through several listeners of a gateway have one name. There are more if the time did not
// suffice to look at all.
type constrainedPaths struct {
	count   int
	named   []string
	omitted bool // some have another name
	more    bool
}

// pathsOf returns the paths that a constraint applies to for which is reports true, with
// what it says of each. It takes half the remaining time: what only warns must not take so
// long that the write is denied.
func (ev constraintWrite) pathsOf(ctx context.Context, v *snapshot.View, c *constraint.Constraint,
	is func(*effective.Effective, constraint.Level, *effective.Budget) (string, bool, error),
) (out constrainedPaths, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	budget, only := ev.guard.budget(ctx), []api.PolicyKind{c.PolicyKind()}
	err = ev.guard.Engine.Walk(v, effective.Scope{All: true, Kinds: only, Empty: only}, false, budget, func(e *effective.Effective) error {
		level, on := c.On(&e.Path, v)
		if !on {
			return nil
		}
		text, ok, err := is(e, level, budget)
		if !ok || err != nil {
			return err
		}
		if out.count++; out.omitted {
			return nil
		}
		if name := pathText(e) + text; !slices.Contains(out.named, name) {
			out.omitted = len(out.named) == maxPathsNamed
			if !out.omitted {
				out.named = append(out.named, name)
			}
		}
		return nil
	})
	if out.more = errors.Is(err, effective.ErrTooMuch); err != nil && !out.more {
		return out, fmt.Errorf("walk paths of %s: %w", c.Ref(), err)
	}
	return out, nil
}

// String returns the paths that are named.
func (p constrainedPaths) String() string {
	text := strings.Join(p.named, ", ")
	if p.more || p.omitted {
		text += ", …"
	}
	return text
}

// readConstraintTargets adds to the view after the write the targets that it lacks: they
// may have been created a moment ago.
func (ev constraintWrite) readConstraintTargets(ctx context.Context, c *constraint.Constraint) error {
	absent, _ := ev.after.Absent(c)
	if ev.guard.ReadLive == nil || len(absent) > maxLiveReads {
		return nil
	}
	r := &liveReader{ev: ev.write, view: ev.after}
	for _, n := range absent {
		if n.Ref.Namespace == "" && !gateway.ClusterScoped(n.Ref.PolicyKind()) {
			continue // one in any namespace has no single address
		}
		if err := r.add(ctx, n.Ref); err != nil {
			return err
		}
	}
	ev.after = r.view
	return nil
}

// checkValidationLimit denies a PolicyConstraint that brings more validations to its
// namespace than allowed. One that adds none is not denied for existing ones.
func (ev constraintWrite) checkValidationLimit(c *constraint.Constraint) {
	namespace, kind := c.Ref().Namespace, c.PolicyKind()
	is := countValidations(ev.after.Constraints(kind), namespace)
	if namespace == "" || is <= maxValidations || is <= countValidations(ev.before.Constraints(kind), namespace) {
		return
	}
	ev.report(api.ReasonTooMuch, api.Deny, Finding{
		What: fmt.Sprintf("the PolicyConstraints of namespace %s would have %d validations for %s: must have at most %d, since every write that they apply to evaluates them",
			namespace, is, kind, maxValidations),
		Advice: "combine several into one expression, or use rules instead of validations",
	})
}

// countValidations counts those of the constraints of a namespace.
func countValidations(all []*constraint.Constraint, namespace string) int {
	n := 0
	for _, c := range all {
		if c.Ref().Namespace == namespace {
			n += c.Validations()
		}
	}
	return n
}
