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
// or depend on objects that are: an override that such a one beats, or whose target it
// has, applies as soon as that is deleted. So the write is also compared without them.
type terminatingPolicies struct {
	policies map[api.Ref]bool
	// at is the path that was observed last, known are the policies above its route: paths
	// come gateway by gateway.
	at    gateway.Path
	known []policyAtLevel
}

// policyAtLevel is a policy on a level of a path.
type policyAtLevel struct {
	policy *merge.Policy
	level  int
}

// observe adds those of a path. The lowest policy beats none.
func (d *terminatingPolicies) observe(ev *evaluation, e *effective.Effective) {
	if e.Path.Gateway != d.at.Gateway || e.Path.Set != d.at.Set || e.Path.Service != d.at.Service {
		d.at, d.known = e.Path, d.known[:0]
	}
	for i := range e.Layers {
		l := &e.Layers[i]
		at, above := policyAtLevel{l.Policy, l.Level}, gateway.Level(l.Level) < gateway.LevelRoute
		if above && slices.Contains(d.known, at) || !above && e.Kind.SameTarget == api.Hierarchical && (i == len(e.Layers)-1 || !hasOverrides(l)) {
			continue
		}
		if ev.old != nil && l.Policy == &ev.old.Policy {
			continue
		}
		p, ok := ev.before.Get(e.Ref(l.Policy)).(*policykind.Policy)
		if !ok || p.Ref() == ev.change.Object().Ref() {
			continue
		}
		terminating := ev.terminatingDependencies(e, l.Policy, gateway.Level(l.Level))
		if len(terminating) > 0 && ev.writtenDependsOnAll(e, terminating) && !p.Deleting {
			continue
		}
		if above {
			d.known = append(d.known, at)
		}
		if p.Deleting || len(terminating) > 0 {
			if d.policies == nil {
				d.policies = make(map[api.Ref]bool)
			}
			d.policies[p.Ref()] = true
		}
	}
}

// writtenDependsOnAll reports whether the policy that is written depends on the same
// objects on a path: it is deleted as well then.
func (ev *evaluation) writtenDependsOnAll(e *effective.Effective, terminating [][]api.Ref) bool {
	return ev.old != nil && slices.ContainsFunc(e.Layers, func(l merge.Layer) bool {
		return l.Policy == &ev.old.Policy && coveredBy(terminating, ev.dependenciesBefore(effective.Override{Policy: l.Policy, Level: gateway.Level(l.Level)}, e))
	})
}

// hasOverrides reports whether a policy has overrides where it is.
func hasOverrides(l *merge.Layer) bool {
	for i := range l.Blocks {
		if b := &l.Blocks[i]; len(b.Rules) > 0 && l.Reading(b).Block == merge.Overrides {
			return true
		}
	}
	return false
}

// without returns a view without them.
func (d *terminatingPolicies) without(v *snapshot.View) *snapshot.View {
	changes := make([]snapshot.Change, 0, len(d.policies))
	for ref := range d.policies {
		changes = append(changes, snapshot.Delete(ref))
	}
	return v.With(changes...)
}

// compareWithoutTerminating compares the paths of a scope again without the terminating
// policies, for the overrides that apply then.
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
	ev.overrides.addLostOverrides(o.overrides.lost)
	return nil
}

// forOverrides returns an evaluation of the same write for the overrides of other paths, or
// of other views.
func (ev *evaluation) forOverrides(before, after *snapshot.View) *evaluation {
	o := &evaluation{
		guard: ev.guard, change: ev.change, budget: ev.budget, indirect: ev.indirect, policy: ev.policy, old: ev.old,
		before: before, after: after,
		overrides: overrides{pairs: ev.overrides.pairs, lessProtected: ev.overrides.lessProtected},
		requests:  ev.requests,
	}
	o.requests.paths = nil
	return o
}

// addLostOverrides adds losses that were not found before.
func (os *overrides) addLostOverrides(more map[overrideLossKey]*overrideLoss) {
	for l, t := range more {
		if os.lost == nil {
			os.lost = make(map[overrideLossKey]*overrideLoss)
		}
		if _, lost := os.lost[l]; !lost {
			os.lost[l] = t
		}
	}
}

// withoutTerminatingGrants returns a view without the grants of a namespace that are being
// deleted, or will be with an owner, but for the one that is written: policies that need a
// grant must not depend on those.
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
