package guard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// evaluation is the evaluation of one change.
type evaluation struct {
	*overrides

	observe   func(effective.Pair)
	truncated bool // not all paths were evaluated
	hasPaths  bool // some path was evaluated
	// unread are the gateways that do not read policies, by kind: the one that is written,
	// else those on paths that get such a gateway.
	unread map[*policykind.Kind]*effective.Unread

	overriddenRules overriddenRules
	ruleLosses      ruleLosses
	gained          gainedRules
	reach           reachCheck
	schema          schemaViolations
	requirements    requirements
	limits          limitTally
	kinds           kindWrite
	blast           *blastRadius
}

// newEvaluation returns an evaluation of no write, which leaves a view as it is.
func (g *Guard) newEvaluation(v *snapshot.View, budget *effective.Budget) *evaluation {
	return evaluationOf(&write{guard: g, before: v, after: v, budget: budget})
}

// evaluationOf returns the evaluation of a write.
func evaluationOf(w *write) *evaluation {
	blast := &blastRadius{write: w}
	o := newOverrides(w, blast)
	ev := &evaluation{overrides: o, blast: blast}
	ev.overriddenRules.write, ev.schema.write, ev.limits.ev = w, w, ev
	ev.ruleLosses.successors, ev.ruleLosses.blast, ev.requirements.successors = o.successors, blast, o.successors
	ev.reach.requests, ev.reach.blast = o.requests, blast
	ev.kinds.write, ev.kinds.blast = w, blast
	ev.overriddenRules.others.max, ev.ruleLosses.max = maxOverriddenRules, maxRuleLosses
	return ev
}

// run evaluates the change. The findings are complete only if there is no error.
func (ev *evaluation) run(ctx context.Context) error {
	scope, err := ev.prepare(ctx)
	if err != nil {
		return err
	}
	if err := ev.comparePaths(scope); err != nil {
		return err
	}
	if err := ev.evaluateNewOwner(ctx); err != nil {
		return err
	}
	if err := ev.summarize(ctx); err != nil {
		return err
	}
	return unlistedCheck{ev}.check(ctx)
}

// prepare checks the object alone, sets the views before and after the change, and returns
// the paths that the change touches.
func (ev *evaluation) prepare(ctx context.Context) (effective.Scope, error) {
	switch ev.change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		return ev.kinds.prepare(ctx)
	case *constraint.Constraint:
		ev.before, ev.after = ev.change.apply(ev.before)
		return effective.Scope{}, constraintWrite{ev.write}.check(ctx)
	}
	ev.change.packPolicies(ev.before)
	v, err := ev.readMissing(ctx)
	if err != nil {
		return effective.Scope{}, err
	}
	if g, ok := ev.change.Object().(*gateway.Grant); ok {
		v = withoutTerminatingGrants(v, g.Ref())
	}
	ev.before, ev.after = ev.change.apply(v)
	ev.policy, _ = ev.change.After.(*policykind.Policy)
	if ev.change.Before != nil {
		ev.old, _ = ev.before.Get(ev.change.Before.Ref()).(*policykind.Policy)
	}
	if ev.policy != nil {
		policyCheck{ev.write}.check()
	} else {
		objectCheck{ev.requests}.check()
	}
	maximumCheck{ev.requests}.check()
	return ev.scope(), nil
}

// scope returns the paths that the change touches.
func (ev *evaluation) scope() effective.Scope {
	all := objects(ev.change)
	kinds, some := ev.kindsOfClassEdit()
	if some && len(kinds) == 0 {
		return effective.Scope{}
	}
	if ev.writesPolicy() {
		kinds = []api.PolicyKind{ev.change.Object().Ref().PolicyKind()}
	}
	for _, c := range ev.change.deletedToo(ev.before) {
		all = append(all, ev.before.Get(c.Ref))
		if kinds != nil {
			kinds = append(kinds, c.Ref.PolicyKind())
		}
	}
	s := effective.ScopeOf(all...)
	s.Kinds = kinds
	return s
}

// kindsOfClassEdit returns the kinds whose policies depend on what an edit of a class
// changes, however many paths others have on its gateways; false if all may.
func (ev *evaluation) kindsOfClassEdit() ([]api.PolicyKind, bool) {
	before, _ := ev.change.Before.(*gateway.Class)
	after, _ := ev.change.After.(*gateway.Class)
	if before == nil || after == nil || before.Controller != after.Controller || before.Deleting != after.Deleting {
		return nil, false
	}
	var kinds []api.PolicyKind
	if before.Parameters != after.Parameters {
		kinds = append(kinds, before.Parameters.PolicyKind(), after.Parameters.PolicyKind())
	}
	if maps.Equal(before.Labels, after.Labels) {
		return kinds, true
	}
	for p := range ev.before.Selecting(after.Ref().PolicyKind()) {
		kinds = append(kinds, p.Kind.Ref())
	}
	for _, k := range ev.before.Kinds() {
		if w := k.Waypoints; w != nil && w.Purpose != nil && before.Labels[w.Purpose.Label] != after.Labels[w.Purpose.Label] {
			kinds = append(kinds, k.Ref())
		}
	}
	return append(kinds, ev.before.Constrained()...), true
}

// comparePaths evaluates the paths of a scope, before and after.
func (ev *evaluation) comparePaths(s effective.Scope) error {
	s.Empty = slices.DeleteFunc(ev.after.Constrained(), func(k api.PolicyKind) bool { return !ev.mayAffect(k) }) // constraints bind paths without a policy, too
	if err := ev.trackRequests(); err != nil {
		return fmt.Errorf("find the requests that move: %w", err)
	}
	if err := ev.guard.Engine.Compare(ev.before, ev.after, s, ev.budget, ev.evaluatePair); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	if err := ev.compareWithoutTerminating(s); err != nil {
		return err
	}
	if err := ev.compareOthers(); err != nil {
		return err
	}
	if err := ev.compareAwaited(); err != nil {
		return err
	}
	if err := ev.ruleLosses.findMoved(); err != nil {
		return fmt.Errorf("find the requests that lose rules: %w", err)
	}
	return nil
}

// summarize turns what was counted on the paths into findings.
func (ev *evaluation) summarize(ctx context.Context) error {
	ev.reportNoPath()
	ev.reach.reportAll()
	ev.overriddenRules.reportOwn()
	ev.overriddenRules.reportOthers()
	may := &authorizer{ev: ev.write, ctx: ctx, known: make(map[api.Ref]bool)}
	if err := ev.kinds.reportAll(may); err != nil {
		return err
	}
	ev.limitTally().addUnattached()
	if err := ev.limits.reportAll(may); err != nil {
		return err
	}
	ev.requirements.reportAll()
	ev.schema.reportAll()
	ev.addOwnLosses()
	if err := ev.reportLostOverrides(may); err != nil {
		return err
	}
	ev.ruleLosses.reportAll()
	objectCheck{ev.requests}.reportGrant()
	ev.reportUnreadKinds()
	ev.blast.reportAll()
	return nil
}

// found returns the findings of an action with their fields, sorted.
func (ev *write) found(a api.Action) []Finding {
	out := ev.findings.withAction(a)
	for i := range out {
		out[i].Field = cmp.Or(out[i].Field, ev.fieldOf(&out[i]))
	}
	return out
}

// decision returns the findings by action, and the counts.
func (ev *evaluation) decision() *Decision {
	return &Decision{
		Change:  ev.change,
		Denials: ev.found(api.Deny), Warnings: ev.found(api.Warn), Audits: ev.found(api.Audit),
		Changes: api.Changes{Paths: ev.blast.paths.count(), Namespaces: ev.blast.namespaces.count(), Unreached: ev.blast.unreached.count()},
		Lost:    ev.blast.lost(),
		Gained:  ev.gained.list(),
		Moved:   ev.ruleLosses.moved,
		After:   ev.after,
		Cut:     ev.truncated,
	}
}
