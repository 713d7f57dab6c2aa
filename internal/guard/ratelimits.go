package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// add adds what limits bind to on a path. Paths come route by route.
func (t *limitTally) add(p effective.Pair) {
	if t.unit != p.Unit {
		t.finishRoute()
		t.unit = p.Unit
	}
	was, is := p.Before.Bound(), p.After.Bound()
	t.addInForce(&t.before, was)
	if is != nil && !p.Again {
		t.addInForce(&t.after, is)
		t.addShadowed(was, is)
		t.addWidened(was, is)
	}
}

// addInForce adds the limits that are in force on a path, before or after the write.
func (t *limitTally) addInForce(to *limitSide, b *effective.Bound) {
	if b == nil {
		return
	}
	for i, r := range b.Rules {
		k, bound := keyOfLimit(b, i), &b.Limits[i]
		s := to.route.at(k, limitState{on: b.On, policy: r.From.Policy})
		if s.bound != bound { // paths of one route mostly share it
			s.bound = bound
			if t.writes(k) {
				to.own.at(k, limitSum{}).addBound(bound)
			}
		}
		if rule := b.On.Path.Rule; rule < len(b.On.Path.Route.Rules) && bound.Matches(rule) {
			s.matched, s.holds = true, s.holds || b.Holder() == i
		}
	}
}

// addShadowed adds the limits that match the path's rule and are not bound to it: those
// where one of the two is of the policy that is written, and those that were not
// shadowed before.
func (t *limitTally) addShadowed(was, is *effective.Bound) {
	for _, i := range is.Shadowed() {
		holder := is.Holder()
		limit, by := keyOfLimit(is, i), keyOfLimit(is, holder)
		if t.writes(limit) || t.writes(by) || !was.Matches(is.Rules[i]) || was.PlaceOf(is.Rules[holder]) != was.Holder() {
			t.note(limitChange{what: limitShadowed, limit: limit, by: by}, limitState{on: is.On})
		}
	}
}

// addWidened adds the matches that the limit with triggers which is bound to the path's
// rule applies to without selecting them: of the policy that is written all of them, of
// another policy those that the write adds.
func (t *limitTally) addWidened(was, is *effective.Bound) {
	holder, rule := is.Holder(), is.On.Path.Rule
	if holder < 0 || len(is.Limits[holder].Triggers) == 0 {
		return
	}
	var matches []string
	k := keyOfLimit(is, holder)
	switch {
	case t.writes(k):
		matches = is.Limits[holder].AlsoMatches(rule)
	case !was.Matches(is.Rules[holder]):
		s := t.after.route.entries[k]
		s.added = append(s.added, rule)
	case was.Triggered: // else it was bound to every rule
		matches = addedMatches(was, is, holder)
	}
	for _, match := range matches {
		t.note(limitChange{what: limitWidened, limit: k, text: t.shown(match, is.On)}, limitState{on: is.On})
	}
}

// shown returns a match of a route or of a trigger, unless the writer may not be allowed to
// read the matches of the route.
func (t *limitTally) shown(match string, on *effective.Effective) string {
	if !t.ev.reads(on.Path.Route.Namespace) {
		return "(not shown)"
	}
	return match
}

// addedMatches returns the matches that the write brings to the limit at a place by
// way of the path's rule, which it matched before.
func addedMatches(was, is *effective.Bound, place int) []string {
	limit := &is.Limits[place]
	before := &was.Limits[was.PlaceOf(is.Rules[place])]
	had, has := before.Route.Texts(was.On.Path.Rule), limit.Route.Texts(is.On.Path.Rule)
	if len(missingIn(has, had)) > 0 {
		has = limit.AlsoMatches(is.On.Path.Rule) // the rule's matches were edited: the limit selects the others
	}
	if len(missingIn(had, has)) > 0 { // a match may have been another rule's
		had = matchedTexts(before)
	}
	return missingIn(had, has)
}

// missingIn returns the texts that a list does not have.
func missingIn(list, texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return slices.Contains(list, text) })
}

// matchedTexts returns the texts of the matches of the rules that a limit matches.
func matchedTexts(b *ratelimit.Bound) []string {
	if b.Route == nil {
		return nil // no limit there has triggers
	}
	var out []string
	for rule := range b.Route.Rules() {
		if b.Matches(rule) {
			out = append(out, b.Route.Texts(rule)...)
		}
	}
	return out
}

// addDisplaced adds overrides that match the path's rule after the write and are not
// bound to it, since limits of lower policies precede them by name. It leaves out those
// that were displaced before: by a limit of the same policy, or by the same limit
// behind another one that is gone.
func (t *limitTally) addDisplaced(p effective.Pair) {
	is, was := p.After.Bound(), p.Before.Bound()
	if is == nil {
		return
	}
	for _, i := range is.Shadowed() {
		r, at := is.Rules[i], is.Holder()
		holder := is.Rules[at]
		if r.From.Block != merge.Overrides || holder.From.Policy == r.From.Policy || is.Overrides(holder, p.After.Level(r.From.Policy)) ||
			was.Matches(r) && (was.Rules[was.Holder()].From.Policy.Same(holder.From.Policy) || was.Matches(holder)) {
			continue
		}
		f := limitChange{what: limitDisplaced, limit: keyOfLimit(is, i), by: keyOfLimit(is, at), action: api.Deny}
		if !t.ev.causedByWrite(f.limit.policy) {
			f.action = api.Warn
		}
		t.note(f, limitState{on: is.On})
	}
}

// finishRoute adds what was added of the current route.
func (t *limitTally) finishRoute() {
	for k, is := range t.after.route.entries {
		if t.writes(k) {
			t.after.own.at(k, limitSum{}).add(is)
		} else {
			t.addOther(k, cmp.Or(t.before.route.entries[k], &limitState{}), is)
		}
	}
	for k, was := range t.before.route.entries {
		if t.writes(k) {
			t.before.own.at(k, limitSum{}).add(was)
		}
	}
	clear(t.before.route.entries)
	clear(t.after.route.entries)
}

// addOther adds what the write does on a route to a limit of another policy.
func (t *limitTally) addOther(k limitKey, was, is *limitState) {
	switch {
	case was.holds && !is.matched:
		t.note(limitChange{what: limitUnbound, limit: k}, *is)
	case was.on == nil && !is.matched && is.on.Level(is.policy) >= gateway.LevelRoute:
		t.note(limitChange{what: limitUnmatched, limit: k}, *is)
	case was.on != nil && is.matched:
		t.addRemoved(k, was, is)
		for _, rule := range is.added {
			path := is.on.Path
			path.Rule = rule
			if len(missingIn(matchedTexts(was.bound), is.bound.Route.Texts(rule))) > 0 { // else what it was bound to is in two rules now
				t.note(limitChange{what: limitRuleAdded, limit: k, text: path.Element(gateway.LevelRule).String()}, *is)
			}
		}
	}
}

// addRemoved adds the matches of a limit that some rule had and none has after the write.
func (t *limitTally) addRemoved(k limitKey, was, is *limitState) {
	if len(was.bound.Triggers) != len(is.bound.Triggers) {
		return // the triggers were edited
	}
	for i := range is.bound.Triggers {
		had, has := was.bound.Triggers[i].Found, is.bound.Triggers[i].Found
		for m := range min(len(had), len(has)) {
			if had[m] && !has[m] {
				text := t.shown(is.bound.Limit.Triggers[i].Matches[m].String(), is.on)
				t.note(limitChange{what: limitMatchRemoved, limit: k, text: text}, *is)
			}
		}
	}
}

// addUnattached adds what limits would bind to where the object that is written is on no
// path: no gateway takes the routes yet, or they have no rules.
func (t *limitTally) addUnattached() {
	ev := t.ev
	route, _ := ev.change.After.(*gateway.Route)
	was, _ := ev.change.Before.(*gateway.Route)
	switch {
	case ev.policy != nil && ev.overriddenRules.ownPaths == 0:
		for _, target := range ev.after.Targets(ev.policy) {
			if r, ok := ev.after.Get(target.Ref).(*gateway.Route); ok {
				t.addTarget(r, r, ev.old, ev.policy, target)
			}
		}
	case route != nil && was != nil && !ev.hasPaths:
		for p, target := range ev.after.On(route.Ref()) {
			t.addTarget(was, route, p, p, target)
		}
	}
}

// addTarget adds what the limits of a policy, before and after the write, would bind to on
// a route that it targets.
func (t *limitTally) addTarget(before, after *gateway.Route, old, policy *policykind.Policy, target policykind.Target) {
	if !policy.Binds || policy.Invalid != nil || target.Refused != "" {
		return
	}
	t.finishRoute()
	if old != nil && old.Invalid == nil {
		for _, e := range effective.Standalone(old, before, target.Section) {
			t.addInForce(&t.before, e.Bound())
		}
	}
	for _, e := range effective.Standalone(policy, after, target.Section) {
		b := e.Bound()
		t.addInForce(&t.after, b)
		if b != nil && len(after.Rules) > 0 && policy == t.ev.policy {
			t.addShadowed(nil, b)
			t.addWidened(nil, b)
		}
	}
	t.finishRoute()
}

// reportUnbound reports the limits of policies on the route of a path, or on its rules, that
// bind to nothing of it. A limit of a gateway's policy may be meant for some of its routes
// only.
func (t *limitTally) reportUnbound(e *effective.Effective) {
	b := e.Bound()
	if b == nil {
		return
	}
	for i, r := range b.Rules {
		level, limit := e.Level(r.From.Policy), &b.Limits[i]
		if level == gateway.LevelRoute && !limit.MatchesAny() || level > gateway.LevelRoute && !limit.Matches(e.Path.Rule) {
			c := limitChange{limit: keyOfLimit(b, i)}
			t.ev.reportForKind(e.Kind, api.ReasonTriggerUnmatched, api.Deny, c.finding("binds to no rule of "+routeText(e), "", ""))
		}
	}
}

// reportAll reports what was added on all paths. A displaced override is left out if it is
// reported as lost, and a warning for writers who are allowed to override its policy; may
// is nil where permissions do not matter.
func (t *limitTally) reportAll(may *authorizer) error {
	t.finishRoute()
	for _, k := range slices.SortedFunc(maps.Keys(t.after.own.entries), compareLimitKeys) {
		(&ownLimit{t, k, t.ownBefore(k), t.after.own.entries[k]}).reportOwn()
	}
	for _, c := range slices.SortedFunc(maps.Keys(t.changes.entries), compareLimitChanges) {
		on, policy := t.changes.entries[c], c.limit.policy
		g := limitGroup{on.first.on.Kind, c.what.code, cmp.Or(c.action, api.Warn), c.what.more}
		if c.what == limitDisplaced {
			if t.ev.losesBinding(policy, c.limit.rule.String()) {
				continue
			}
			permitted, err := may.allows(Finding{Action: c.action, Policy: policy})
			if err != nil {
				return err
			}
			if permitted {
				g.action = api.Warn
			}
		}
		t.report(g, func() Finding { return c.what.finding(t, c, on) })
	}
	for g, n := range t.reported {
		if n > maxLimits {
			t.ev.reportForKind(g.kind, g.code, g.action, Finding{What: fmt.Sprintf(g.more, n-maxLimits)})
		}
	}
	return nil
}

// losesBinding reports whether an override is lost since it is no longer bound.
func (o *overrides) losesBinding(policy api.Ref, rule string) bool {
	for key, l := range o.lost {
		if key.unboundReason != "" && key.rule == rule && l.ref(l.key.policy) == policy {
			return true
		}
	}
	return false
}
