package guard

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// systemDeletion says why a deletion is made by the garbage collector or by namespace
// deletion.
type systemDeletion struct {
	reason  string // "" if it is not known to be one
	checked bool   // the reason was looked up
}

// allowSystemDeletion turns the denials of a deletion into records of the audit log if the
// deletion is made by the garbage collector or by namespace deletion: it was evaluated when the
// owner was set, or the namespace deleted. Such a deletion is never denied: its denials are recorded.
func (ev *evaluation) allowSystemDeletion(ctx context.Context) error {
	if ev.change.Operation != Delete || len(ev.findings.withAction(api.Deny)) == 0 {
		return nil
	}
	if err := ev.findSystemDeletion(ctx); err != nil || ev.deletion.reason == "" {
		return err
	}
	for at, f := range ev.findings {
		if f.Action == api.Deny {
			f.Action = api.Audit
			f.What = fmt.Sprintf("%s (deletion not denied: %s)", f.What, ev.deletion.reason)
			ev.findings[at] = f
		}
	}
	return nil
}

// findSystemDeletion looks up the reason of a system deletion. It is needed only before a denial.
func (ev *write) findSystemDeletion(ctx context.Context) error {
	if ev.change.Operation != Delete || ev.deletion.checked {
		return nil
	}
	ev.deletion.checked = true
	if ev.change.GarbageCollected {
		ev.deletion.reason = "garbage collection"
		return nil
	}
	name := ev.change.Before.Ref().Namespace
	if name == "" {
		return nil
	}
	ref := (&gateway.Namespace{Name: name}).Ref()
	n, _ := ev.before.Get(ref).(*gateway.Namespace)
	if (n == nil || !n.Terminating) && ev.guard.ReadLive != nil {
		o, err := ev.readLive(ctx, ref) // its deletion is a moment ago, maybe
		if err != nil {
			return err
		}
		n, _ = o.(*gateway.Namespace)
	}
	if n != nil && n.Terminating {
		ev.deletion.reason = "namespace " + name + " is terminating"
	}
	return nil
}
