package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// maxRelaxedNamed is how many paths of a relaxed constraint are named.
const maxRelaxedNamed = 3

// checkRelaxed warns of a constraint that would deny less, with the paths that it applies
// to; now is nil if it is removed. Permission to do that is a matter of RBAC.
func (ev *evaluation) checkRelaxed(ctx context.Context, was, now *constraint.Constraint) error {
	if was == nil || !was.Relaxes(now) || ev.before.Kind(was.PolicyKind()) == nil {
		return nil
	}
	ctx, cancel := withHalfDeadline(ctx)
	defer cancel()
	budget := ev.guard.budget(ctx)
	only := []api.PolicyKind{was.PolicyKind()}
	paths := 0
	var named []string
	err := ev.guard.Engine.Walk(ev.before, effective.Scope{All: true, Kinds: only, Empty: only}, false, budget, func(e *effective.Effective) error {
		if _, on := was.On(&e.Path, ev.before); !on {
			return nil
		}
		if paths++; paths <= maxRelaxedNamed {
			named = append(named, pathText(e))
		}
		return nil
	})
	if err != nil && !errors.Is(err, effective.ErrTooMuch) {
		return fmt.Errorf("walk paths of %s: %w", was.Ref(), err)
	}
	ev.reportRelaxed(was, paths, named, err != nil)
	return nil
}

func (ev *evaluation) reportRelaxed(c *constraint.Constraint, paths int, named []string, more bool) {
	if paths == 0 && !more {
		return
	}
	ref, on := c.Ref(), plural(paths, "path")
	if more { // counting took too long
		on, named = "very many paths", nil
	}
	f := Finding{
		Policy: &ref,
		What:   fmt.Sprintf("%s applies to %s, and would no longer deny some writes there", ref, on),
		Short:  fmt.Sprintf("%s would deny less on %s", ref, on),
	}
	if len(named) > 0 {
		f.What += ": " + strings.Join(named, ", ")
	}
	if paths > len(named) && !more {
		f.What += ", …"
	}
	ev.report(api.ReasonRequirementUnmet, api.Warn, f)
}

// reportRemovedConstraints warns of the constraints that are removed with their
// definition.
func (ev *evaluation) reportRemovedConstraints(ctx context.Context, after *snapshot.View) error {
	for _, kind := range []api.PolicyKind{constraint.Kind, constraint.ClusterKind} {
		for o := range ev.before.Objects(kind) {
			c, ok := o.(*constraint.Constraint)
			if !ok || after.Get(o.Ref()) != nil {
				continue
			}
			if err := ev.checkRelaxed(ctx, c, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// withHalfDeadline returns a context with half the remaining time: what only warns must
// not take so long that the write is denied.
func withHalfDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}
