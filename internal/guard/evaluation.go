package guard

import (
	"cmp"
	"maps"

	api "overrule.dev/overrule/api/v1alpha1"
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
	reach           reachCheck
	schema          schemaViolations
	requirements    requirements
	limits          limitTally
	kinds           kindWrite
	blast           *blastRadius
	owned           *evaluation // of the deletion with a new owner, nil for none
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

// scope returns the paths that the change touches.
func (ev *evaluation) scope() effective.Scope {
	all := objects(ev.change)
	kinds, some := ev.kindsOfClassEdit()
	if some && len(kinds) == 0 {
		return effective.Scope{}
	}
	if ev.writesPolicy() {
		of := ev.change.Object().Ref().PolicyKind()
		ev.dependent = ev.before.DependentKinds(of)
		kinds = append(kinds, of)
	}
	for _, c := range ev.change.deletedToo(ev.before) {
		all = append(all, ev.before.Get(c.Ref))
		if of := c.Ref.PolicyKind(); kinds != nil {
			ev.dependent = append(append(ev.dependent, of), ev.before.DependentKinds(of)...)
		}
	}
	s := effective.ScopeOf(all...)
	s.Kinds = append(kinds, ev.dependent...)
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
		for _, k := range []api.PolicyKind{before.Parameters.PolicyKind(), after.Parameters.PolicyKind()} {
			kinds = append(append(kinds, k), ev.before.AttachedThrough(k)...)
		}
		for _, k := range ev.before.Kinds() {
			if k.Targets.AnyBackendWith != "" {
				kinds = append(kinds, k.Ref())
			}
		}
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
		Gained:  ev.blast.gained.list(),
		Moved:   ev.ruleLosses.moved,
		After:   ev.after,
		Cut:     ev.truncated,
	}
}
