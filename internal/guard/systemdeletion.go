package guard

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// bySystem finds out whether a deletion that would be denied is one that the
// system makes: of an object whose owner is gone, or whose namespace is being
// deleted. That was judged when the owner was set, or the namespace deleted.
// Such a deletion is never denied: what speaks against it is recorded.
func (j *judge) bySystem(ctx context.Context) error {
	if j.change.Operation != Delete || len(j.found.by(api.Deny)) == 0 {
		return nil
	}
	if err := j.findSystem(ctx); err != nil || j.system == "" {
		return err
	}
	for at, f := range j.found {
		if f.Action == api.Deny {
			f.Action = api.Audit
			f.What = fmt.Sprintf("%s (deleted by the system: %s)", f.What, j.system)
			j.found[at] = f
		}
	}
	return nil
}

// findSystem sets system. It is asked for on the way to a denial alone.
func (j *judge) findSystem(ctx context.Context) error {
	if j.change.Operation != Delete || j.asked {
		return nil
	}
	j.asked = true
	if j.change.GarbageCollected {
		j.system = "the garbage collector"
		return nil
	}
	name := j.change.Before.Ref().Namespace
	if name == "" {
		return nil
	}
	ref := (&gateway.Namespace{Name: name}).Ref()
	n, _ := j.before.Get(ref).(*gateway.Namespace)
	if (n == nil || !n.Terminating) && j.Live != nil {
		o, err := j.Live(ctx, ref) // its deletion is a moment ago, maybe
		if err != nil {
			return fmt.Errorf("look for %s: %w", ref, err)
		}
		n, _ = o.(*gateway.Namespace)
	}
	if n != nil && n.Terminating {
		j.system = "namespace " + name + " is being deleted"
	}
	return nil
}
