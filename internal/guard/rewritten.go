package guard

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Versions is what Kinds are asked, if they know, where a CustomResourceDefinition is
// edited.
type Versions interface {
	// Rewritten returns the views as they would be if the policies of the definition
	// were written by another version than the one that is read: by each that the
	// write brings or changes. v is the view after the write.
	Rewritten(ctx context.Context, v *snapshot.View, was, is *policykind.Definition) ([]snapshot.Rewritten, error)
}

// rewritten evaluates a definition by what its other versions would store: a write by
// one of them, of a status or by a client that has never seen the policy, removes what
// the version does not have, and stores its defaults.
func (j *judge) rewritten(ctx context.Context) error {
	was, edited := j.change.Before.(*policykind.Definition)
	is, stays := j.change.After.(*policykind.Definition)
	kinds, ok := j.Kinds.(Versions)
	if !edited || !stays || !ok {
		return nil
	}
	views, err := kinds.Rewritten(ctx, j.after, was, is)
	if err != nil {
		return fmt.Errorf("find out what the versions of %s store: %w", is.Ref(), err)
	}
	for _, r := range views {
		o := &judge{Guard: j.Guard, change: j.change, budget: j.budget, orphaned: true, before: j.before, after: r.View, pairs: j.pairs}
		scope := effective.Scope{All: true, Kinds: []api.PolicyKind{is.Defines()}}
		if err := j.Engine.Compare(o.before, o.after, scope, j.budget, o.orphan); err != nil {
			return fmt.Errorf("compare effective policies: %w", err)
		}
		for _, t := range o.lostOverrides {
			t.version = r.Version
		}
		j.adopt(o)
	}
	return nil
}

// adopt books what is lost by a second evaluation of the change.
func (j *judge) adopt(o *judge) {
	j.loseAlso(o.lostOverrides)
	for _, f := range o.rightful {
		j.rightful.add(f)
	}
}
