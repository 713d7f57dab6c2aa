// Package limits evaluates what a write does to limits that bind to the rules of
// routes by triggers of their own: those of Kuadrant's RateLimitPolicy v2 RFC. Its
// input is the paths that the write touches, before and after; its output is findings:
// limits that bind to no rule, that are shadowed by others, that apply to more than
// their triggers select, or that are bound instead of an override.
package limits

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/internal/snapshot"
)

// Write is the write that is evaluated. The zero Write is none: limits are evaluated as
// they are.
type Write struct {
	// Policy is the policy that is written, Old the same before the write; nil where
	// another object is written.
	Policy, Old *policykind.Policy
	// Reads reports whether messages show the matches of routes of a namespace.
	Reads func(namespace string) bool
	// Causes reports whether the write is to blame for lower limits that are bound
	// instead of an override of a policy. It is nil if no write is evaluated.
	Causes func(override api.Ref) bool
}

// Tracker adds up what a write does to the limits of policies, path by path, route by
// route. The zero Tracker is ready; it is not safe for concurrent use, and must not be
// copied after first use.
type Tracker struct {
	// Write must be set before the first path is added.
	Write Write

	before, after effective.Binder
	linked        bool // after reuses what before has prepared
	unit          int  // of the current route at a root
	route         map[key]*routeLimit
	totals        map[key]*total
	shadowed      map[shadowKey]*occurrences
	widened       map[widenedKey]*occurrences
	displaced     map[displacedKey]*policykind.Kind
	reported      map[group]int
	findings      []Finding
}

func (t *Tracker) binders() (before, after *effective.Binder) {
	if !t.linked {
		t.after, t.linked = t.before.After(), true
	}
	return &t.before, &t.after
}

// Bind binds the limits of a path, before and after the write.
func (t *Tracker) Bind(p effective.Pair) Pair {
	before, after := t.binders()
	return Pair{bind(before, p.Before), bind(after, p.After)}
}

// BindAfter binds the limits of a path after the write.
func (t *Tracker) BindAfter(e *effective.Effective) *Path {
	_, after := t.binders()
	return bind(after, e)
}

// Add adds what limits bind to on a path. Paths come route by route.
func (t *Tracker) Add(p effective.Pair, b Pair) {
	if t.unit != p.Unit {
		t.finishRoute()
		t.unit = p.Unit
	}
	t.addInForce(b.Before, stateBefore)
	if p.Again || b.After == nil {
		return
	}
	t.addInForce(b.After, stateAfter)
	t.addShadowed(b)
	t.addWidened(p, b)
}

// AddUnattachedPolicy adds what the limits of the policy that is written would bind to
// on its target routes. It is for a policy that is on no path: no gateway takes the
// routes yet, or they have no rules.
func (t *Tracker) AddUnattachedPolicy(v *snapshot.View) {
	p := t.Write.Policy
	if !p.Binds || p.Invalid != nil {
		return
	}
	t.finishRoute()
	for _, target := range v.Targets(p) {
		if r, ok := v.Get(target.Ref).(*gateway.Route); ok && target.Refused == "" {
			t.addUnattached(r, r, t.Write.Old, p, target)
		}
	}
}

// AddUnattachedRoute adds what the limits of the policies on the route that is written
// would bind to. It is for a route that is on no path.
func (t *Tracker) AddUnattachedRoute(v *snapshot.View, before, after *gateway.Route) {
	t.finishRoute()
	for p, target := range v.On(after.Ref()) {
		if p.Binds && p.Invalid == nil && target.Refused == "" {
			t.addUnattached(before, after, p, p, target)
		}
	}
}

// addUnattached adds one policy on one such route, before and after.
func (t *Tracker) addUnattached(before, after *gateway.Route, old, policy *policykind.Policy, target policykind.Target) {
	beforeBinder, afterBinder := t.binders()
	if old != nil && old.Invalid == nil {
		t.addTarget(beforeBinder, old, before, target, stateBefore)
	}
	t.addTarget(afterBinder, policy, after, target, stateAfter)
	t.finishRoute()
}

func (t *Tracker) addTarget(b *effective.Binder, p *policykind.Policy, r *gateway.Route, target policykind.Target, of func(*routeLimit) *state) {
	e := effective.Standalone(p, r)
	if len(r.Rules) == 0 {
		t.addInForce(bind(b, e), of)
	}
	for i := range r.Rules {
		if target.Section != "" && !effective.SelectsRule(p.Kind, r, target.Section, i) {
			continue
		}
		on := *e
		on.Path.Rule = i
		path := bind(b, &on)
		t.addInForce(path, of)
		if path != nil && p == t.Write.Policy {
			t.addShadowed(Pair{After: path})
			t.addWidened(effective.Pair{After: &on}, Pair{After: path})
		}
	}
}

// addInForce adds the limits that are in force on a path, before or after the write.
func (t *Tracker) addInForce(p *Path, of func(*routeLimit) *state) {
	if p == nil {
		return
	}
	if t.route == nil {
		t.route = make(map[key]*routeLimit)
	}
	for i := range p.bound.Rules {
		k := p.key(i)
		l := t.route[k]
		if l == nil {
			l = &routeLimit{}
			t.route[k] = l
		}
		of(l).add(p, i)
	}
}

// finishRoute adds what was added of the current route to the totals.
func (t *Tracker) finishRoute() {
	for k, l := range t.route {
		if !t.writes(k) && l.unchanged() {
			continue
		}
		sum := t.totals[k]
		if sum == nil {
			sum = &total{key: k, reads: t.Write.Reads}
			if t.totals == nil {
				t.totals = make(map[key]*total)
			}
			t.totals[k] = sum
		}
		sum.add(l)
	}
	clear(t.route)
}

// writes reports whether a limit is one of the policy that is written.
func (t *Tracker) writes(k key) bool { return t.Write.Policy != nil && t.Write.Policy.Ref() == k.ref() }

// hiddenMatch stands for a match of a route that the writer may not be allowed to read.
const hiddenMatch = "(not shown)"

// sameMatches reports whether triggers select the same matches before and after.
func sameMatches(before, after *ratelimit.Bound) bool {
	return slices.EqualFunc(before.Triggers, after.Triggers, func(a, b ratelimit.TriggerMatch) bool { return slices.Equal(a.Found, b.Found) })
}
