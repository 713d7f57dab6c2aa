package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// run judges the change. What it found is whole only if there is no error.
func (j *judge) run(ctx context.Context) error {
	scope, err := j.look(ctx)
	if err != nil {
		return err
	}
	if err := j.compare(scope); err != nil {
		return err
	}
	if err := j.ownerless(ctx); err != nil {
		return err
	}
	if err := j.rewritten(ctx); err != nil {
		return err
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	return j.unlisted(ctx)
}

// look finds what is wrong with the object alone, and returns the paths that
// its change touches; the views before and after it are made by then.
func (j *judge) look(ctx context.Context) (effective.Scope, error) {
	switch j.change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		return j.reading(ctx)
	case *constraint.Constraint:
		j.before, j.after = j.change.apply(j.before)
		return effective.Scope{}, j.constraint(ctx)
	}
	j.change.pack(j.before)
	v, err := j.withTargets(ctx, j.before, j.change)
	if err != nil {
		return effective.Scope{}, err
	}
	if g, ok := j.change.Object().(*gateway.Grant); ok {
		v = withoutGoing(v, g.Ref())
	}
	j.before, j.after = j.change.apply(v)
	j.policy, _ = j.change.After.(*policykind.Policy)
	if j.change.Before != nil {
		j.old, _ = j.before.Get(j.change.Before.Ref()).(*policykind.Policy)
	}
	if j.policy != nil {
		j.policyAlone()
	} else {
		j.otherAlone()
	}
	j.crowded()
	return j.scope(), nil
}

// scope returns the paths that the change touches.
func (j *judge) scope() effective.Scope {
	s := effective.ScopeOf(objects(j.change)...)
	if j.policyWritten() {
		s.Kinds = []api.PolicyKind{j.change.Object().Ref().PolicyKind()}
	}
	if n, ok := j.change.Before.(*gateway.Namespace); ok && j.change.After == nil {
		for _, c := range j.before.AllIn(n.Name) {
			in := effective.ScopeOf(j.before.Get(c.Ref))
			s.Policies, s.Grants = append(s.Policies, in.Policies...), append(s.Grants, in.Grants...)
			s.Objects = append(s.Objects, in.Objects...)
		}
	}
	return s
}

// reading judges a change of how policies are read: a profile, or a definition
// of one of the kinds.
func (j *judge) reading(ctx context.Context) (effective.Scope, error) {
	if p, ok := j.change.After.(*policykind.Profile); ok {
		if err := j.profile(ctx, p); err != nil {
			return effective.Scope{}, err
		}
	}
	if j.Kinds == nil || len(j.found.by(api.Deny)) > 0 {
		return effective.Scope{}, nil
	}
	after, err := j.Kinds.Reread(ctx, j.before, j.change.Before, j.change.After)
	if second, ok := errors.AsType[*policykind.DefinedError](err); ok {
		j.report(api.ReasonNotRead, api.Deny, Finding{What: second.Error(), Advice: "name another kind in it, or delete the first one before"})
		return effective.Scope{}, nil
	}
	if err != nil {
		return effective.Scope{}, fmt.Errorf("find out what %s does to the policies: %w", j.change.Object().Ref(), err)
	}
	j.after = after
	j.scales()
	if after == j.before {
		return effective.Scope{}, nil
	}
	if err := j.constraintsGone(ctx, after); err != nil {
		return effective.Scope{}, err
	}
	kinds := readDifferently(j.before, after)
	j.loosened = loosened(j.before, after, kinds)
	return effective.Scope{All: true, Kinds: kinds}, nil
}

// loosened returns those of the kinds, read in both views, that protect overrides
// less in the second, and in what respects.
func loosened(before, after *snapshot.View, kinds []api.PolicyKind) map[api.PolicyKind]string {
	out := make(map[api.PolicyKind]string)
	for _, ref := range kinds {
		was, is := before.Kind(ref), after.Kind(ref)
		if was == nil || is == nil {
			continue
		}
		if how := was.WeakenedBy(is); len(how) > 0 {
			out[ref] = strings.Join(how, "; ")
		}
	}
	return out
}

// scales warns of a definition with a scale subresource on what is read of its
// policies: the webhook denies its writes.
func (j *judge) scales() {
	d, ok := j.change.After.(*policykind.Definition)
	if !ok {
		return
	}
	if kind := j.after.Kind(d.Defines()); kind != nil && len(kind.Scales(policykind.ScalePaths(&d.CustomResourceDefinition))) > 0 {
		j.report(api.ReasonNotRead, api.Warn, Finding{
			What:   fmt.Sprintf("the scale subresource of %s writes a field that is part of the policies, so its writes are denied", kind.Ref()),
			Advice: "take it out of the definition, or name the field in ignore in the kind's PolicyProfile",
		})
	}
}

// readDifferently returns the kinds that two views read in different ways, nil
// if it is not the kinds that they differ in.
func readDifferently(before, after *snapshot.View) []api.PolicyKind {
	var out []api.PolicyKind
	for _, k := range before.Kinds() {
		if after.Kind(k.Ref()) != k {
			out = append(out, k.Ref())
		}
	}
	for _, k := range after.Kinds() {
		if before.Kind(k.Ref()) == nil {
			out = append(out, k.Ref())
		}
	}
	return out
}

// compare judges the paths of a scope, before and after.
func (j *judge) compare(s effective.Scope) error {
	s.Empty = j.constrained()
	if err := j.Engine.Compare(j.before, j.after, s, j.budget, j.pair); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	return j.compareStaying(s)
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
