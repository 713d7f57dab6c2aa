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

// departing are the policies on the paths before the write that are going, or rest on
// what is: an override that such a one beats, or whose target it has, holds as soon as
// that is gone. So the write is compared without them as well.
type departing struct {
	policies map[api.Ref]bool
	// at is the path that was looked at, known are the policies above its route: paths
	// come gateway by gateway.
	at    gateway.Path
	known []onLevel
}

// onLevel is a policy on a level of a path.
type onLevel struct {
	policy *merge.Policy
	level  int
}

// look books those of a path. The lowest policy beats none.
func (d *departing) look(j *judge, e *effective.Effective) {
	if e.Path.Gateway != d.at.Gateway || e.Path.Set != d.at.Set || e.Path.Service != d.at.Service {
		d.at, d.known = e.Path, d.known[:0]
	}
	for i := range e.Layers {
		l := &e.Layers[i]
		at, above := onLevel{l.Policy, l.Level}, gateway.Level(l.Level) < gateway.LevelRoute
		if above && slices.Contains(d.known, at) || !above && e.Kind.SameTarget == api.Hierarchical && (i == len(e.Layers)-1 || !overrules(l)) {
			continue
		}
		if j.old != nil && l.Policy == &j.old.Policy {
			continue
		}
		p, ok := j.before.Get(e.Ref(l.Policy)).(*policykind.Policy)
		if !ok || p.Ref() == j.change.Object().Ref() {
			continue
		}
		going := j.goingUnder(e, l.Policy, gateway.Level(l.Level))
		if len(going) > 0 && j.restsOnAll(e, going) && !p.Deleting {
			continue
		}
		if above {
			d.known = append(d.known, at)
		}
		if p.Deleting || len(going) > 0 {
			if d.policies == nil {
				d.policies = make(map[api.Ref]bool)
			}
			d.policies[p.Ref()] = true
		}
	}
}

// restsOnAll reports whether the policy that is written rests on the same on a path: it
// goes as well then.
func (j *judge) restsOnAll(e *effective.Effective, going [][]api.Ref) bool {
	return j.old != nil && slices.ContainsFunc(e.Layers, func(l merge.Layer) bool {
		return l.Policy == &j.old.Policy && eachIn(going, j.restedOn(effective.Override{Policy: l.Policy, Level: gateway.Level(l.Level)}, e))
	})
}

// overrules reports whether a policy has overrides where it is.
func overrules(l *merge.Layer) bool {
	for i := range l.Blocks {
		if b := &l.Blocks[i]; len(b.Rules) > 0 && l.Reading(b).Block == merge.Overrides {
			return true
		}
	}
	return false
}

// without returns a view without them.
func (d *departing) without(v *snapshot.View) *snapshot.View {
	changes := make([]snapshot.Change, 0, len(d.policies))
	for ref := range d.policies {
		changes = append(changes, snapshot.Delete(ref))
	}
	return v.With(changes...)
}

// compareStaying compares the paths of a scope once more, without the policies that are
// going, for the overrides that hold then.
func (j *judge) compareStaying(s effective.Scope) error {
	if len(j.departing.policies) == 0 {
		return nil
	}
	o := &judge{
		Guard: j.Guard, change: j.change, budget: j.budget, orphaned: j.orphaned, policy: j.policy, old: j.old, pairs: j.pairs,
		before: j.departing.without(j.before), after: j.departing.without(j.after), loosened: j.loosened,
	}
	s.Empty = nil
	err := j.Engine.Compare(o.before, o.after, s, j.budget, func(p effective.Pair) error { return o.overrides(p, o.bind(p), false) })
	if err != nil {
		return fmt.Errorf("compare effective policies without those that are going: %w", err)
	}
	j.loseAlso(o.lostOverrides)
	return nil
}

// loseAlso books losses that were not found before.
func (j *judge) loseAlso(more map[lostOverride]*overrideTally) {
	for l, t := range more {
		if j.lostOverrides == nil {
			j.lostOverrides = make(map[lostOverride]*overrideTally)
		}
		if _, lost := j.lostOverrides[l]; !lost {
			j.lostOverrides[l] = t
		}
	}
}

// withoutGoing returns a view without the grants of a namespace that are being
// deleted, or will be with an owner, but for the one that is written: what hangs
// on a grant may rest on those as little.
func withoutGoing(v *snapshot.View, written api.Ref) *snapshot.View {
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
