package guard

import (
	"context"
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// absentTargets warns of targets that a constraint names and that do not exist:
// no write is held to it there.
func (j *judge) absentTargets(ctx context.Context, c *constraint.Constraint) error {
	if err := j.withNamed(ctx, c); err != nil {
		return err
	}
	absent, whole := j.after.Absent(c)
	if len(absent) == 0 {
		return nil
	}
	names := make([]string, len(absent))
	for i, n := range absent {
		names[i] = n.String()
	}
	f := Finding{
		What:   fmt.Sprintf("the constraint has no effect on targets that do not exist: %s", strings.Join(names, ", ")),
		Advice: "check the target's kind, name and section, or create it",
	}
	if whole {
		f.What = fmt.Sprintf("the constraint has no effect, since none of its targets exists: %s", strings.Join(names, ", "))
	}
	j.report(api.ReasonTargetNotFound, api.Warn, f)
	return nil
}

// withNamed adds to the view after the write the targets that it lacks: they may
// have been created a moment ago.
func (j *judge) withNamed(ctx context.Context, c *constraint.Constraint) error {
	absent, _ := j.after.Absent(c)
	if j.Live == nil || len(absent) > mostLive {
		return nil
	}
	asked := make(map[api.Ref]bool)
	for _, n := range absent {
		if asked[n.Ref] || n.Ref.Namespace == "" && !gateway.ClusterScoped(n.Ref.PolicyKind()) {
			continue // one in any namespace has no single address
		}
		asked[n.Ref] = true
		o, err := j.Live(ctx, n.Ref)
		if err != nil {
			return fmt.Errorf("look for %s: %w", n, err)
		}
		if o != nil {
			j.after = j.after.With(snapshot.Put(o))
		}
	}
	return nil
}
