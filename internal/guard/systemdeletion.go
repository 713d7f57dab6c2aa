package guard

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// auditSystemDeletion finds out whether a deletion that would be denied is made by the
// garbage collector or by namespace deletion. It was evaluated when the owner was set, or
// the namespace deleted. Such a deletion is never denied: its denials are recorded.
func (ev *evaluation) auditSystemDeletion(ctx context.Context) error {
	if ev.change.Operation != Delete || len(ev.findings.withAction(api.Deny)) == 0 {
		return nil
	}
	if err := ev.findSystemDeletion(ctx); err != nil || ev.systemReason == "" {
		return err
	}
	for at, f := range ev.findings {
		if f.Action == api.Deny {
			f.Action = api.Audit
			f.What = fmt.Sprintf("%s (deletion not denied: %s)", f.What, ev.systemReason)
			ev.findings[at] = f
		}
	}
	return nil
}

// findSystemDeletion sets systemReason. It is needed only before a denial.
func (ev *evaluation) findSystemDeletion(ctx context.Context) error {
	if ev.change.Operation != Delete || ev.systemChecked {
		return nil
	}
	ev.systemChecked = true
	if ev.change.GarbageCollected {
		ev.systemReason = "garbage collection"
		return nil
	}
	name := ev.change.Before.Ref().Namespace
	if name == "" {
		return nil
	}
	ref := (&gateway.Namespace{Name: name}).Ref()
	n, _ := ev.before.Get(ref).(*gateway.Namespace)
	if (n == nil || !n.Terminating) && ev.guard.Live != nil {
		o, err := ev.guard.Live(ctx, ref) // its deletion is a moment ago, maybe
		if err != nil {
			return fmt.Errorf("get %s: %w", ref, err)
		}
		n, _ = o.(*gateway.Namespace)
	}
	if n != nil && n.Terminating {
		ev.systemReason = "namespace " + name + " is terminating"
	}
	return nil
}
