package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// terminatingPolicies are the policies on the paths before the write that are terminating,
// or that depend on a terminating object. Once such a policy is gone, the overrides that it
// replaces, and those that conflict with it on its target, apply. So the write is also
// compared without these policies.
type terminatingPolicies struct {
	policies map[api.Ref]bool
	// at is the last path that was observed, and known are the policies above its route
	// that need no second check: paths come gateway by gateway.
	at    gateway.Path
	known []policyAtLevel
}

// policyAtLevel is a policy on a level of a path.
type policyAtLevel struct {
	policy *merge.Policy
	level  int
}

// observe adds the terminating policies of a path. The lowest policy is left out, since it
// overrides no other.
func (t *terminatingPolicies) observe(ev *evaluation, e *effective.Effective) {
	if e.Path.Gateway != t.at.Gateway || e.Path.Set != t.at.Set || e.Path.Service != t.at.Service {
		t.at, t.known = e.Path, t.known[:0]
	}
	for i := range e.Layers {
		layer := &e.Layers[i]
		at, above := policyAtLevel{layer.Policy, layer.Level}, gateway.Level(layer.Level) < gateway.LevelRoute
		if above && slices.Contains(t.known, at) || !above && e.Kind.SameTarget == api.Hierarchical && (i == len(e.Layers)-1 || !effective.HasOverrides(layer)) {
			continue
		}
		if ev.old != nil && layer.Policy == &ev.old.Policy {
			continue
		}
		p, ok := ev.before.Get(e.Ref(layer.Policy)).(*policykind.Policy)
		if !ok || p.Ref() == ev.change.Object().Ref() {
			continue
		}
		terminating := ev.terminatingDependencies(e, layer.Policy, gateway.Level(layer.Level))
		if len(terminating) > 0 && ev.writtenDependsOnAll(e, terminating) && !p.Deleting {
			continue
		}
		if above {
			t.known = append(t.known, at)
		}
		if p.Deleting || len(terminating) > 0 {
			put(&t.policies, p.Ref(), true)
		}
	}
}

// writtenDependsOnAll reports whether the policy that is written depends on the same
// terminating objects on a path: then it no longer applies either, once they are deleted.
func (ev *evaluation) writtenDependsOnAll(e *effective.Effective, terminating [][]api.Ref) bool {
	return ev.old != nil && slices.ContainsFunc(e.Layers, func(layer merge.Layer) bool {
		return layer.Policy == &ev.old.Policy && coveredBy(terminating, ev.dependenciesBefore(effective.Override{Policy: layer.Policy, Level: gateway.Level(layer.Level)}, e))
	})
}

// without returns a view without the terminating policies.
func (t *terminatingPolicies) without(v *snapshot.View) *snapshot.View {
	changes := make([]snapshot.Change, 0, len(t.policies))
	for ref := range t.policies {
		changes = append(changes, snapshot.Delete(ref))
	}
	return v.With(changes...)
}

// compareWithoutTerminating compares the paths of a scope again without the terminating
// policies, to find the overrides that apply once these are deleted.
func (ev *evaluation) compareWithoutTerminating(s effective.Scope) error {
	if len(ev.overrides.terminating.policies) == 0 {
		return nil
	}
	o := ev.forOverrides(ev.overrides.terminating.without(ev.before), ev.overrides.terminating.without(ev.after))
	s.Empty = nil
	err := ev.guard.Engine.Compare(o.before, o.after, s, ev.budget, func(p effective.Pair) error { return o.checkOverrides(p, o.limits.Bind(p), false) })
	if err != nil {
		return fmt.Errorf("compare effective policies without those that are terminating: %w", err)
	}
	ev.overrides.addNewLosses(o.overrides.lost)
	return nil
}

// forOverrides returns an evaluation of the same write for the overrides of other paths, or
// of other views.
func (ev *evaluation) forOverrides(before, after *snapshot.View) *evaluation {
	o := ev.between(before, after)
	o.policy, o.requests = ev.policy, ev.requests
	o.requests.pathsBefore, o.requests.pathsAfter = nil, nil
	return o
}

// addNewLosses adds losses that were not found before.
func (o *overrides) addNewLosses(more map[lostOverrideKey]*lostOverride) {
	for key, l := range more {
		if o.lost[key] == nil {
			put(&o.lost, key, l)
		}
	}
}

// withoutTerminatingGrants returns a view without the ReferenceGrants of a namespace that
// are being deleted or will be deleted with an owner, except the one that is written. A
// policy that needs a grant must not count on these.
func withoutTerminatingGrants(v *snapshot.View, written api.Ref) *snapshot.View {
	var gone []snapshot.Change
	for o := range v.In(written.PolicyKind(), written.Namespace) {
		if g, ok := o.(*gateway.Grant); ok && g.Deleting && g.Ref() != written {
			gone = append(gone, snapshot.Delete(g.Ref()))
		}
	}
	if len(gone) == 0 {
		return v
	}
	return v.With(gone...)
}
