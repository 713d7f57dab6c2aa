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

// checkRelaxed warns of a constraint that would deny less, with the paths that it applies
// to; now is nil if it is removed. Permission to do that is a matter of RBAC.
func (ev *evaluation) checkRelaxed(ctx context.Context, was, now *constraint.Constraint) error {
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
	ev.report(api.ReasonRequirementUnmet, api.Warn, Finding{
		Policy: &ref,
		What:   fmt.Sprintf("%s applies to %s, and would no longer deny some writes there%s", ref, on, list),
		Short:  fmt.Sprintf("%s would deny less on %s", ref, on),
	})
	return nil
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

// constrainedPaths are paths of a constraint, of which the first are named. There are more
// if the time did not suffice to look at all.
type constrainedPaths struct {
	count int
	named []string
	more  bool
}

// pathsOf returns the paths that a constraint applies to for which is reports true, with
// what it says of each. It takes half the remaining time: what only warns must not take so
// long that the write is denied.
func (ev *evaluation) pathsOf(ctx context.Context, v *snapshot.View, c *constraint.Constraint,
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
		if out.count++; out.count <= maxPathsNamed {
			out.named = append(out.named, pathText(e)+text)
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
	if p.more || p.count > len(p.named) {
		text += ", …"
	}
	return text
}
