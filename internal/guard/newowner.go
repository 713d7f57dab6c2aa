package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// NewOwners names the owners that an edit adds to an object, "" for none (Change.Owner). A
// reference that is edited is a new one: to the garbage collector an owner of another name
// does not exist. systemwrites.go of package webhookconfig compares owners, too.
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
	ev.blast.owner, ev.owned = o.blast, o
	return nil
}

// evaluateOwnedPath evaluates a path for evaluateNewOwner.
func (ev *evaluation) evaluateOwnedPath(p effective.Pair) error {
	if p.Changed() {
		lost := lostRules(p)
		ev.blast.addImpact(p, lost)
		ev.ruleLosses.add(p, lost, false)
	}
	if p.After != nil && !p.Again {
		ev.weakenings.check(p)
		if err := ev.requirements.check(p); err != nil {
			return err
		}
	}
	return ev.checkOverrides(p, false)
}

// reportOwned reports what else the deletion with a new owner would do: constraints that would
// not be met, and rules that would be lost.
func (ev *evaluation) reportOwned() {
	if ev.owned == nil {
		return
	}
	o := ev.owned
	o.findings = ev.findings // of overrides, which need not be said twice
	o.requirements.reportAll()
	o.ruleLosses.reportAll()
	ev.findings = o.findings
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
