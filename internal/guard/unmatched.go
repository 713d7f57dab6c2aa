package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// mostBindings is how many findings about limits are told one by one, of each
// sort; mostMatches how many matches are named in one.
const (
	mostBindings = 20
	mostMatches  = 3
)

// bindings turns what was booked of limits into findings.
func (ev *evaluation) bindings(may *authorizer) error {
	ev.endRoute()
	ev.pathless()
	if b := &ev.binding; len(b.tallies)+len(b.shadows)+len(b.widened)+len(b.hidden) == 0 {
		return nil
	}
	for _, k := range slices.SortedFunc(maps.Keys(ev.binding.tallies), compareLimits) {
		t := ev.binding.tallies[k]
		if ev.written(k) {
			ev.ownLimit(t)
		} else {
			ev.otherLimit(t)
		}
	}
	ev.shadowing()
	ev.widening()
	if err := ev.hiding(may); err != nil {
		return err
	}
	ev.heldBack()
	return nil
}

// ownLimit finds what is wrong with a limit of the policy being written: it binds to
// nothing, or only in part.
func (ev *evaluation) ownLimit(t *limitTally) {
	if t.is.all == nil {
		return
	}
	ev.movedHere(t)
	denied := ev.outside(t)
	switch {
	case t.is.everywhereApart():
		if !t.outside() || !denied && !t.was.everywhereApart() { // else that was said
			ev.unmatched(t)
		}
	case len(t.unfound()) > 0:
		for _, at := range t.unfound() {
			ev.tellLimit(t.sort(api.Warn, "more matches of triggers that no rule has"), func() Finding { return t.partly(at) })
		}
	case t.is.apart != nil:
		ev.tellLimit(t.sort(api.Warn, "more limits that bind to no rule of some routes"), func() Finding {
			return Finding{
				Rule:   t.at.String(),
				Short:  fmt.Sprintf("%s binds to no rule of %d of %s", t.at, t.is.apart.routes(), plural(t.is.all.routes(), "route")),
				What:   fmt.Sprintf("%s binds to no rule of %d of %s: %s", t.at, t.is.apart.routes(), plural(t.is.all.routes(), "route"), t.is.apart.onRoutes()),
				Advice: "requests to them are not limited by it",
			}
		})
	}
}

// movedHere takes what a limit was from the block of its policy that it was in before
// the write.
func (ev *evaluation) movedHere(t *limitTally) {
	k := t.limitKey
	for _, k.block = range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides} {
		if o := ev.binding.tallies[k]; t.was.all == nil && o != nil && o.is.all == nil {
			t.was = o.was
		}
	}
}

// everywhereApart reports whether the limit is in force on routes, and matches no
// rule of any.
func (s *limitSum) everywhereApart() bool { return s.apart != nil && s.apart.times() == s.all.times() }

// outside finds hostnames of triggers by which no request reaches any of the
// routes. It reports whether the write is denied for one.
func (ev *evaluation) outside(t *limitTally) (denied bool) {
	for i, trigger := range t.is.last.bound.Limit.Triggers {
		for _, name := range trigger.Hostnames {
			if t.is.inside[name] {
				continue
			}
			action := api.Deny
			if t.was.all != nil && !t.was.inside[name] && t.had(name) {
				action = api.Warn
			}
			denied = denied || action == api.Deny
			ev.tellLimit(t.sort(action, "more hostnames of triggers that do not match those of the routes"), func() Finding {
				return Finding{
					Rule:  t.at.String(),
					Short: fmt.Sprintf("hostname %s of %s does not match those of %s", name, t.at, routeOf(t.is.last.on)),
					What: fmt.Sprintf("hostname %s of triggers[%d] of %s does not match the hostnames of %s: %s",
						name, i, t.at, t.is.all.onRoutes(), hostnames(t.is.last)),
					Advice: "correct it, or add it to the route's hostnames",
				}
			})
		}
	}
	return denied
}

// sort is one of TriggerUnmatched.
func (t *limitTally) sort(action api.Action, more string) limitSort {
	return limitSort{t.kind, api.ReasonTriggerUnmatched, action, more}
}

// had reports whether the limit named a hostname before the write.
func (t *limitTally) had(name string) bool {
	for _, trigger := range t.was.last.bound.Limit.Triggers {
		if slices.Contains(trigger.Hostnames, name) {
			return true
		}
	}
	return false
}

func hostnames(s limitSide) string {
	var out []string
	for _, h := range s.on.Path.Hosts() {
		if h == "" {
			h = "any"
		}
		out = append(out, h)
	}
	return strings.Join(out, ", ")
}

// unmatched finds that a limit of the policy being written binds to nothing at all.
func (ev *evaluation) unmatched(t *limitTally) {
	action := api.Deny
	if t.was.everywhereApart() {
		action = api.Warn // it did so before: it stays editable
	}
	ev.tellLimit(t.sort(action, "more limits that bind to no rule"), func() Finding {
		f := Finding{
			Rule:   t.at.String(),
			Short:  fmt.Sprintf("%s binds to no rule of %s", t.at, routeOf(t.is.apart.first.on)),
			What:   fmt.Sprintf("%s binds to no rule of %s: %s", t.at, t.is.apart.onRoutes(), t.whatIsMissing()),
			Advice: "use a match that the route has, or add a rule with this match to the route",
		}
		if len(t.unfound()) == 0 {
			f.Advice = "use a match of the rules that it applies to"
		}
		if action == api.Warn {
			f.What += "; not introduced by this write"
		}
		return f
	})
}

// unfound returns the matches, by trigger, that no rule of any route has.
func (t *limitTally) unfound() [][2]int {
	var out [][2]int
	for i, trigger := range t.is.last.bound.Limit.Triggers {
		for m := range trigger.Matches {
			if at := [2]int{i, m}; !t.is.found[at] {
				out = append(out, at)
			}
		}
	}
	return out
}

// outside reports whether no request reaches any of the routes by a hostname of the
// limit's triggers.
func (t *limitTally) outside() bool {
	return !slices.ContainsFunc(t.is.last.bound.Limit.Triggers, func(trigger ratelimit.Trigger) bool {
		return len(trigger.Hostnames) == 0 || slices.ContainsFunc(trigger.Hostnames, func(name string) bool { return t.is.inside[name] })
	})
}

func (t *limitTally) whatIsMissing() string {
	missing := t.unfound()
	if len(missing) == 0 {
		text := fmt.Sprintf("the rules with the match %s are not those that it applies to", t.someMatch())
		if t.hasOutside() {
			text += ", for its hostnames"
		}
		return text
	}
	var out []string
	for _, at := range missing[:min(len(missing), mostMatches)] {
		out = append(out, t.noMatch(at))
	}
	if more := len(missing) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// hasOutside reports whether requests for some hostnames of the limit's triggers do
// not reach one of the routes.
func (t *limitTally) hasOutside() bool {
	return slices.ContainsFunc(t.is.some, func(s limitSide) bool {
		return slices.ContainsFunc(s.bound.Triggers, func(c ratelimit.Chosen) bool { return len(c.Outside) > 0 })
	})
}

// someMatch names the first match of the limit's triggers.
func (t *limitTally) someMatch() string {
	for _, trigger := range t.is.last.bound.Limit.Triggers {
		if len(trigger.Matches) > 0 {
			return trigger.Matches[0].String()
		}
	}
	return (&ratelimit.Match{}).String()
}

// noMatch says that no rule has a match, and what the nearest ones are.
func (t *limitTally) noMatch(at [2]int) string {
	match := &t.is.last.bound.Limit.Triggers[at[0]].Matches[at[1]]
	text := fmt.Sprintf("no rule has the match %s of triggers[%d].matches[%d]", match, at[0], at[1])
	near := t.nearest(match)
	switch r := t.is.last.on.Path.Route; {
	case len(near) > 0:
		return text + ", nearest: " + strings.Join(near, ", ")
	case len(r.Rules) == 0:
		return text + ": the route has no rules"
	case len(t.is.some) > 0:
		return text // none of those that have is shown
	default:
		return text + fmt.Sprintf(": rules of a %s have no matches", r.Kind)
	}
}

// nearest names the matches of the routes, those of other namespaces left out, that are most like one.
func (t *limitTally) nearest(m *ratelimit.Match) []string {
	var routes []*ratelimit.Route
	var shown []*gateway.Route
	for _, s := range t.is.some {
		if t.shows(s.on.Path.Route) {
			routes, shown = append(routes, s.index), append(shown, s.on.Path.Route)
		}
	}
	var out []string
	for _, n := range ratelimit.NearestOf(routes, m, mostMatches) {
		route := shown[n.Route]
		in := route.RuleName(n.Rule)
		if t.is.all.routes() > 1 {
			in += " of " + route.Ref().String()
		}
		out = append(out, fmt.Sprintf("%s (%s)", n.Text, in))
	}
	return out
}

// partly finds a match of a limit that chooses nothing, while others do.
func (t *limitTally) partly(at [2]int) Finding {
	on := t.is.last
	return Finding{
		Rule:   t.at.String(),
		Short:  fmt.Sprintf("%s is only partly bound: no rule has the match %s", t.at, &on.bound.Limit.Triggers[at[0]].Matches[at[1]]),
		What:   fmt.Sprintf("%s is only partly bound: %s, on %s", t.at, t.noMatch(at), t.is.all.onRoutes()),
		Advice: "requests of its other matches are limited",
	}
}

// otherLimit tells what a write does to the limits of another policy.
func (ev *evaluation) otherLimit(t *limitTally) {
	policy := t.ref()
	tell := func(code api.ReasonCode, more, what, short, advice string) {
		ev.tellLimit(limitSort{t.kind, code, api.Warn, more}, func() Finding {
			return Finding{
				Rule: t.at.String(), Policy: &policy,
				What:   fmt.Sprintf("%s of %s %s", t.at, policy, what),
				Short:  fmt.Sprintf("%s of %s %s", t.at, policy, short),
				Advice: advice,
			}
		})
	}
	const restore = "keep the matches that bind it, or edit the policy as well"
	if t.unbound != nil && t.unbound.first.bound.ExcludedByHostnames() {
		tell(api.ReasonTriggerUnmatched, "more limits no longer bound to any rule",
			fmt.Sprintf("is no longer bound to any rule of %s: no request for its hostnames reaches it", t.unbound.onRoutes()),
			"is no longer bound to any rule", "keep the hostnames that bind it, or edit the policy as well")
	} else if t.unbound != nil {
		tell(api.ReasonTriggerUnmatched, "more limits no longer bound to any rule",
			fmt.Sprintf("is no longer bound to any rule of %s", t.unbound.onRoutes()), "is no longer bound to any rule", restore)
	}
	if t.stranded != nil {
		tell(api.ReasonTriggerUnmatched, "more limits that bind to no rule of a route",
			fmt.Sprintf("binds to no rule of %s", t.stranded.onRoutes()), "binds to no rule", "its triggers select none of the rules' matches")
	}
	for _, text := range slices.Sorted(maps.Keys(t.missing)) {
		tell(api.ReasonTriggerUnmatched, "more matches of triggers that no rule has after this write",
			fmt.Sprintf("no longer finds its match %s in any rule of %s", text, t.missing[text].onRoutes()),
			"no longer finds its match "+text, restore)
	}
	for _, rule := range slices.Sorted(maps.Keys(t.fresh)) {
		tell(api.ReasonLimitWidened, "more rules that limits are also bound to", fmt.Sprintf("is now also bound to %s", rule), "is bound to one more rule", "")
	}
}

// unbound finds the limits of policies on a route itself, or on its rules, that bind
// to nothing of it. One of a gateway's policy is meant for some of its routes.
func (ev *evaluation) unbound(e *effective.Effective) {
	s := ev.boundOn(e)
	if s == nil {
		return
	}
	for i := range s.Rules {
		level, bound := e.Level(s.Rules[i].From.Policy), &s.Binding.Limits[i]
		if level < gateway.LevelRoute || bound.Matches(e.Path.Rule) || level == gateway.LevelRoute && bound.MatchesAny() {
			continue
		}
		policy := s.of(i)
		ev.reportForKind(e.Kind, api.ReasonTriggerUnmatched, api.Deny, Finding{
			Rule: s.Rules[i].Key.String(), Policy: &policy,
			What: fmt.Sprintf("%s of %s binds to no rule of %s", s.Rules[i].Key, policy, routeOf(e)),
		})
	}
}

// shadowing tells which limits are bound in the place of others.
func (ev *evaluation) shadowing() {
	all := slices.SortedFunc(maps.Keys(ev.binding.shadows), func(a, b shadowKey) int {
		if c := compareLimits(a.limit, b.limit); c != 0 {
			return c
		}
		return compareLimits(a.by, b.by)
	})
	for i, k := range all {
		on, policy, by := ev.binding.shadows[k], k.limit.ref(), k.by.ref()
		if i == mostBindings {
			ev.reportForKind(on.kind, api.ReasonLimitShadowed, api.Warn, Finding{What: fmt.Sprintf("more limits are shadowed: %d", len(all)-i)})
			return
		}
		limit, holder := k.limit.at.String(), k.by.at.String()
		if policy != by || !ev.written(k.limit) {
			limit, holder = limit+" of "+policy.String(), holder+" of "+by.String()
		}
		other := policy
		if ev.written(k.limit) {
			other = by
		}
		ev.reportForKind(on.kind, api.ReasonLimitShadowed, api.Warn, Finding{
			Rule: k.limit.at.String(), Policy: &other,
			Short:  fmt.Sprintf("%s is shadowed by %s on %s", k.limit.at, k.by.at, on.onRules()),
			What:   fmt.Sprintf("%s is shadowed by %s on %s: only one limit is bound to a rule, the first by name", limit, holder, on.onRules()),
			Advice: "rename one to change the order, or select other rules",
		})
	}
}

// widening tells what limits hold for beyond what they ask for.
func (ev *evaluation) widening() {
	all := slices.SortedFunc(maps.Keys(ev.binding.widened), func(a, b widenedKey) int {
		if c := compareLimits(a.limit, b.limit); c != 0 {
			return c
		}
		return strings.Compare(a.what, b.what)
	})
	for i, k := range all {
		on, policy := ev.binding.widened[k], k.limit.ref()
		if i == mostBindings {
			ev.reportForKind(on.kind, api.ReasonLimitWidened, api.Warn, Finding{What: fmt.Sprintf("more matches that limits also apply to: %d", len(all)-i)})
			return
		}
		f := Finding{
			Rule: k.limit.at.String(), Policy: &policy,
			Short: fmt.Sprintf("%s of %s also applies to %s", k.limit.at, policy, k.what),
			What:  fmt.Sprintf("%s of %s also applies to %s: %s has that match as well", k.limit.at, policy, k.what, on.onRules()),
		}
		if ev.written(k.limit) {
			f.Policy, f.Short = nil, fmt.Sprintf("%s also applies to %s, which its triggers do not select", k.limit.at, k.what)
			f.What = fmt.Sprintf("%s also applies to %s, which its triggers do not select: %s has that match as well", k.limit.at, k.what, on.onRules())
		}
		if f.Advice = "split the rule to limit a part of it"; k.limit.block == merge.Overrides && !ev.written(k.limit) {
			f.Advice = fmt.Sprintf("ask the owner of %s before you split the rule", policy.Key())
		}
		ev.reportForKind(on.kind, api.ReasonLimitWidened, api.Warn, f)
	}
}
