package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// checkConstraintWrite checks the write of a constraint: whether it is valid, where it denies
// less than before, and which existing paths violate it. Existing violations are reported,
// and do not deny the write.
func (ev *evaluation) checkConstraintWrite(ctx context.Context) error {
	was, _ := ev.change.Before.(*constraint.Constraint)
	c, ok := ev.change.After.(*constraint.Constraint)
	if !ok || ev.change.Owner != "" {
		if err := ev.checkRelaxed(ctx, was, nil); err != nil || !ok {
			return err
		}
	}
	if c.Invalid != nil {
		ev.reportInvalidConstraint(c, c.Invalid, was != nil && was.Invalid != nil)
		return nil
	}
	ev.checkValidationLimit(c)
	kind := ev.after.Kind(c.PolicyKind())
	if kind == nil {
		ev.report(api.ReasonNotRead, api.Warn, Finding{
			What:   fmt.Sprintf("%s has no effect until policy kind %s is installed", c.Ref(), c.PolicyKind()),
			Advice: "check the group and the kind; kubectl overrule profiles lists the policy kinds",
		})
		return ev.checkRelaxed(ctx, was, c)
	}
	if err := ev.reportAbsentTargets(ctx, c); err != nil {
		return err
	}
	fault, err := ev.checkConstraintSchema(c, was, kind)
	if err != nil || fault {
		return err
	}
	if err := ev.checkRelaxed(ctx, was, c); err != nil {
		return err
	}
	return ev.checkExistingPaths(ctx, c)
}

// reportInvalidConstraint denies a constraint that is invalid; one that was invalid before stays
// editable.
func (ev *evaluation) reportInvalidConstraint(c *constraint.Constraint, why error, before bool) {
	action := api.Deny
	if before {
		action = api.Warn
	}
	var faults []string
	for _, fault := range flatten(why) {
		faults = append(faults, fault.Error())
	}
	ev.report(api.ReasonInvalid, action, Finding{
		What: fmt.Sprintf("%s is invalid: %s", c.Ref(), strings.Join(faults, "; ")),
	})
}

// flatten returns the errors that an error is made of.
func flatten(err error) []error {
	if many, ok := errors.AsType[interface {
		error
		Errors() []error
	}](err); ok {
		return many.Errors()
	}
	return []error{err}
}

// checkConstraintSchema checks a constraint against the schema of its kind. It reports
// whether the constraint is invalid.
func (ev *evaluation) checkConstraintSchema(c, was *constraint.Constraint, kind *policykind.Kind) (bool, error) {
	schema, err := ev.after.KindConfig().Schema(kind.Ref())
	if err != nil {
		return false, err
	}
	shape := constraint.Shape{Schema: schema, Content: contentPaths(kind), List: kind.SameTarget == api.Collect}
	fault := c.Check(shape)
	if fault == nil {
		return false, nil
	}
	before := was != nil && was.PolicyKind() == c.PolicyKind() && (was.Invalid != nil || was.Check(shape) != nil)
	ev.reportInvalidConstraint(c, fault, before)
	return true, nil
}

// contentPaths returns the field paths of an object of a kind that effective specs are
// made of.
func contentPaths(k *policykind.Kind) [][]string {
	content := append([]string{"spec"}, k.Layout().Content...)
	out := [][]string{content}
	for _, block := range slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides) {
		out = append(out, append(slices.Clip(content), block))
	}
	return out
}

// checkExistingPaths reports which existing paths violate a constraint.
func (ev *evaluation) checkExistingPaths(ctx context.Context, c *constraint.Constraint) error {
	now := &evaluation{guard: ev.guard, before: ev.after, after: ev.after} // no write is evaluated
	undecided := 0
	paths, err := ev.pathsOf(ctx, ev.after, c, func(e *effective.Effective, level constraint.Level, budget *effective.Budget) (string, bool, error) {
		now.budget = budget
		found, err := now.evaluateConstraint(c, level, now.inputs(effective.Pair{After: e}).after, budget)
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
	ev.reportUndecided(c, undecided)
	return nil
}

// reportUndecided reports on how many paths a constraint needs values that it is not
// allowed to read.
func (ev *evaluation) reportUndecided(c *constraint.Constraint, paths int) {
	if paths == 0 {
		return
	}
	ref := c.Ref()
	ev.report(api.ReasonNotRead, api.Warn, Finding{
		Policy: &ref,
		What: fmt.Sprintf("%s is not fully evaluated on %s: it needs values of policies of other namespaces, which it is not allowed to read",
			ref, api.Plural(paths, "path")),
		Advice: "use origins instead, or ask for a ClusterPolicyConstraint",
	})
}

func (ev *evaluation) reportViolatingPaths(c *constraint.Constraint, paths constrainedPaths) {
	ref := c.Ref()
	f := Finding{Policy: &ref}
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
		f.Short = fmt.Sprintf("%s would break %s: %s", text, ref.Name, paths.named[0])
		f.Advice = "existing violations are allowed: only writes that make one worse are denied; kubectl overrule violations lists them"
	}
	ev.report(api.ReasonRequirementUnmet, api.Warn, f)
}

// reportAbsentTargets warns of targets that a constraint names and that do not exist: no
// write is checked there.
func (ev *evaluation) reportAbsentTargets(ctx context.Context, c *constraint.Constraint) error {
	if err := ev.readConstraintTargets(ctx, c); err != nil {
		return err
	}
	absent, whole := ev.after.Absent(c)
	if len(absent) == 0 {
		return nil
	}
	names := make([]string, len(absent))
	for i, n := range absent {
		names[i] = n.String()
	}
	f := Finding{
		What:   fmt.Sprintf("the constraint has no effect on targets that do not exist: %s", strings.Join(names, ", ")),
		Advice: "check the target's kind, name and section, or create it", Field: "spec.targets",
	}
	if whole {
		f.What = fmt.Sprintf("the constraint has no effect: none of its targets exists: %s", strings.Join(names, ", "))
	}
	ev.report(api.ReasonTargetNotFound, api.Warn, f)
	return nil
}
