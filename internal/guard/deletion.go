package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// NewOwners names the owners that an edit adds to an object, "" for none (Change.Owner). A
// reference that is edited is a new one: to the garbage collector an owner of another name
// does not exist.
func NewOwners(was, now []metav1.OwnerReference) string {
	var out []string
	for _, o := range now {
		if !slices.ContainsFunc(was, func(old metav1.OwnerReference) bool {
			return old.UID == o.UID && old.APIVersion == o.APIVersion && old.Kind == o.Kind && old.Name == o.Name
		}) {
			out = append(out, o.Kind+" "+o.Name)
		}
	}
	return truncated(strings.Join(out, ", "))
}

// evaluateNewOwner evaluates a new owner: the object will be deleted with it, and that
// deletion is not evaluated. So the overrides that depend on the object count as lost now,
// and the paths that it changes as changed.
func (ev *evaluation) evaluateNewOwner(ctx context.Context) error {
	if ev.change.Owner == "" || ev.change.Before == nil {
		return nil
	}
	o := evaluationOf(ev.between(ev.before, ev.before))
	o.pairs = ev.pairs
	o.deletedWithOwner, o.change.After = true, nil
	var scope effective.Scope
	switch ev.change.Before.(type) {
	case *policykind.Profile, *policykind.Definition:
		var err error
		if scope, err = o.kinds.prepare(ctx); err != nil {
			return err
		}
	default:
		o.before, o.after = o.change.apply(ev.before)
		scope = o.scope()
	}
	if err := ev.guard.Engine.Compare(o.before, o.after, scope, ev.budget, o.evaluateOwnedPath); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	if err := o.compareWithoutTerminating(scope); err != nil {
		return err
	}
	o.addOwnLosses()
	ev.addLossesOf(o)
	ev.blast.owner = o.blast
	return nil
}

// evaluateOwnedPath evaluates a path for evaluateNewOwner.
func (ev *evaluation) evaluateOwnedPath(p effective.Pair) error {
	if p.Changed() {
		ev.blast.addImpact(p, lostRules(p))
	}
	if p.After != nil && !p.Again {
		ev.weakenings.check(p)
	}
	return ev.checkOverrides(p, false)
}

// addLossesOf adds the losses of a second evaluation of the change.
func (ev *evaluation) addLossesOf(o *evaluation) {
	ev.addNewLosses(o.overrides)
	for _, l := range o.own {
		ev.addOwn(l)
	}
	for _, k := range o.kinds.reread {
		if !slices.ContainsFunc(ev.kinds.reread, func(r rereadKind) bool { return r.Kind == k.Kind }) {
			ev.kinds.reread = append(ev.kinds.reread, k)
		}
	}
}

// systemDeletion says why a deletion is made by the garbage collector or by namespace
// deletion.
type systemDeletion struct {
	reason  string // "" if it is not known to be one
	checked bool   // the reason was looked up
}

// allowSystemDeletion turns the denials of a deletion into records of the audit log if the
// deletion is made by the garbage collector or by namespace deletion. It was evaluated when the owner was set, or
// the namespace deleted. Such a deletion is never denied: its denials are recorded.
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
