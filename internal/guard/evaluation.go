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
	guard         *Guard
	change        Change
	before, after *snapshot.View
	// policy is the policy being written, old the same before; nil otherwise.
	policy, old *policykind.Policy
	observe     func(effective.Pair)
	budget      *effective.Budget
	// deletedWithOwner is set if the policies are not edited by the write itself: they would be
	// deleted with a new owner.
	deletedWithOwner bool
	truncated        bool // not all paths were evaluated
	// everyKindUnlisted is set if policies may be attached anywhere.
	everyKindUnlisted bool
	hasPaths          bool // some path was evaluated
	// unread are the gateways that do not read policies, by kind: the one that is written,
	// else those on paths that get such a gateway.
	unread map[*policykind.Kind]*effective.Unread

	findings        findings
	reread          []rereadKind
	overriddenRules overriddenRules
	ruleLosses      ruleLosses
	gained          gainedRules
	overrides       overrides
	requests        requests
	ownReach        ownReach
	reaches         *effective.Reaches // after the write
	schema          schemaViolations
	requirements    requirements
	limits          limitTally
	blast           blastRadius
	ownerBlast      *blastRadius // of the deletion with a new owner, nil for none
	deletion        systemDeletion
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
	return ev.checkUnlisted(ctx)
}

// prepare checks the object alone, sets the views before and after the change, and returns
// the paths that the change touches.
func (ev *evaluation) prepare(ctx context.Context) (effective.Scope, error) {
	switch ev.change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		return ev.prepareKinds(ctx)
	case *constraint.Constraint:
		ev.before, ev.after = ev.change.apply(ev.before)
		return effective.Scope{}, ev.checkConstraintWrite(ctx)
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
		ev.checkPolicy()
	} else {
		ev.checkObject()
	}
	ev.checkConditionLimit()
	ev.checkRuleLimit()
	ev.checkMatchLimit()
	ev.checkPathLimit()
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
	if err := ev.findMovedRules(); err != nil {
		return fmt.Errorf("find the requests that lose rules: %w", err)
	}
	return nil
}

// summarize turns what was counted on the paths into findings.
func (ev *evaluation) summarize(ctx context.Context) error {
	ev.reportNoPath()
	ev.reportUnreached()
	ev.reportOverriddenOwn()
	ev.reportOverriddenOthers()
	may := &authorizer{ev: ev, ctx: ctx, known: make(map[api.Ref]bool)}
	if err := ev.reportReread(may); err != nil {
		return err
	}
	ev.limitTally().addUnattached()
	if err := ev.limits.reportAll(may); err != nil {
		return err
	}
	ev.reportUnmet()
	ev.reportUnevaluated()
	ev.reportSchemaViolations()
	ev.addOwnLosses()
	if err := ev.reportLostOverrides(may); err != nil {
		return err
	}
	ev.reportLostRules()
	ev.reportGrant()
	ev.reportUnreadKinds()
	ev.reportBlastRadius()
	return nil
}

// found returns the findings of an action with their fields, sorted.
func (ev *evaluation) found(a api.Action) []Finding {
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
