package guard

import (
	"context"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/schema"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// judge is one judgement in the making.
type judge struct {
	*Guard
	change        Change
	before, after *snapshot.View
	// policy is the policy being written, old the same before; nil otherwise.
	policy, old *policykind.Policy
	observe     func(effective.Pair)
	budget      *effective.Budget
	// orphaned tells that the object is judged as if it were deleted with its
	// new owner.
	orphaned bool
	// system tells why it is the system that deletes the object, "" if it is
	// not known to be; asked, that this was found out.
	system string
	asked  bool
	cut    bool // the paths were too much to look at all

	found      findings
	own        tally // of losses of the policy being written
	others     tally // of losses that the write brings to other policies
	ownPaths   int   // that the policy being written is on
	onPaths    bool  // some path was judged
	paths      paths // that change
	namespaces names // likewise
	blasts     map[api.PolicyKind]*blast
	lastBlast  *blast

	pairs         int32 // that were judged
	held          []effective.Override
	lostOverrides map[lostOverride]*overrideTally
	loosened      map[api.PolicyKind]string      // how kinds protect overrides less after the write
	causes        map[*merge.Rule]api.ReasonCode // of losses
	departing     departing
	rightful      findings // of overrides that are weakened, by right
	like          like     // the pair before
	surroundings  map[surroundingKey]*surrounding
	binding       binding
	misfits       map[misfitKey]*misfit
	conformed     map[*merge.Result]*schema.Verdict // of conformAbove
	needs         needs
}

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

// compare judges the paths of a scope, before and after.
func (j *judge) compare(s effective.Scope) error {
	s.Empty = j.constrained()
	if err := j.Engine.Compare(j.before, j.after, s, j.budget, j.pair); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	return j.compareStaying(s)
}

// finish turns what was counted on the paths into findings.
func (j *judge) finish(ctx context.Context) error {
	j.noPath()
	j.ownLose()
	j.othersLose()
	may := &rights{judge: j, ctx: ctx, known: make(map[api.Ref]bool)}
	if err := j.bindings(may); err != nil {
		return err
	}
	j.unmet()
	j.unevaluated()
	j.invalid()
	j.blast()
	return j.overridesLost(may)
}

func (j *judge) judgement() *Decision {
	return &Decision{
		Change:  j.change,
		Denials: j.found.by(api.Deny), Warnings: j.found.by(api.Warn), Audits: j.found.by(api.Audit),
		Changes: api.Changes{Paths: j.paths.count(), Namespaces: j.namespaces.count()},
		After:   j.after,
		Cut:     j.cut,
	}
}
