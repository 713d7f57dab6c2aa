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

// NewOwners names the owners that an edit adds to an object, "" for none
// (Change.Owner). A reference that is edited is a new one: the garbage collector
// takes an owner of another name for gone.
func NewOwners(was, now []metav1.OwnerReference) string {
	var out []string
	for _, o := range now {
		if !slices.ContainsFunc(was, func(old metav1.OwnerReference) bool {
			return old.UID == o.UID && old.APIVersion == o.APIVersion && old.Kind == o.Kind && old.Name == o.Name
		}) {
			out = append(out, o.Kind+" "+o.Name)
		}
	}
	return clipped(strings.Join(out, ", "))
}

// ownerless judges a new owner: the object will be deleted with it, and nobody
// is asked then. So the overrides that hang on the object are lost now.
func (j *judge) ownerless(ctx context.Context) error {
	if j.change.Owner == "" || j.change.Before == nil {
		return nil
	}
	o := &judge{Guard: j.Guard, change: j.change, budget: j.budget, orphaned: true, before: j.before, old: j.old, pairs: j.pairs}
	o.change.After = nil
	scope, err := o.gone(ctx)
	if err != nil {
		return err
	}
	if err := j.Engine.Compare(o.before, o.after, scope, j.budget, o.orphan); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	if err := o.compareStaying(scope); err != nil {
		return err
	}
	j.adopt(o)
	return nil
}

// orphan judges a path for ownerless.
func (j *judge) orphan(p effective.Pair) error {
	if p.After != nil && !p.Again {
		j.weakened(p)
	}
	return j.overrides(p, j.bind(p), false)
}

// gone is look for an object that is to be deleted without anyone being asked.
func (j *judge) gone(ctx context.Context) (effective.Scope, error) {
	switch j.change.Before.(type) {
	case *policykind.Profile, *policykind.Definition:
		return j.reading(ctx)
	}
	j.before, j.after = j.change.apply(j.before)
	return j.scope(), nil
}

// adopt books what is lost by a second evaluation of the change.
func (j *judge) adopt(o *judge) {
	j.loseAlso(o.lostOverrides)
	for _, f := range o.rightful {
		j.rightful.add(f)
	}
}
