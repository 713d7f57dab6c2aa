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
	o := ev.between(ev.before, ev.before)
	o.indirect, o.change.After = true, nil
	scope, err := o.prepareDeletion(ctx)
	if err != nil {
		return err
	}
	if err := ev.guard.Engine.Compare(o.before, o.after, scope, ev.budget, o.evaluateOwnedPath); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	if err := o.compareWithoutTerminating(scope); err != nil {
		return err
	}
	o.addOwnLosses()
	ev.addLossesOf(o)
	ev.ownerBlast = &o.blast
	return nil
}

// evaluateOwnedPath evaluates a path for evaluateNewOwner.
func (ev *evaluation) evaluateOwnedPath(p effective.Pair) error {
	if p.Changed() {
		ev.addImpact(p, lostRules(p))
	}
	if p.After != nil && !p.Again {
		ev.checkWeakened(p)
	}
	return ev.checkOverrides(p, ev.limits.Bind(p), false)
}

// prepareDeletion is prepare for an object that will be deleted without another
// evaluation.
func (ev *evaluation) prepareDeletion(ctx context.Context) (effective.Scope, error) {
	switch ev.change.Before.(type) {
	case *policykind.Profile, *policykind.Definition:
		return ev.prepareKinds(ctx)
	}
	ev.before, ev.after = ev.change.apply(ev.before)
	return ev.scope(), nil
}

// addLossesOf adds the losses of a second evaluation of the change.
func (ev *evaluation) addLossesOf(o *evaluation) {
	ev.overrides.addNewLosses(o.overrides.lost)
	for _, l := range o.overrides.own {
		ev.overrides.addOwn(l)
	}
	for _, k := range o.reread {
		if !slices.ContainsFunc(ev.reread, func(r rereadKind) bool { return r.Kind == k.Kind }) {
			ev.reread = append(ev.reread, k)
		}
	}
	for _, f := range o.overrides.weakenings {
		ev.overrides.weakenings.add(f)
	}
}
