package limits

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// reportOwn reports what is wrong with a limit of the policy that is written: it binds
// to nothing, or only in part.
func (t *Tracker) reportOwn(l *total) {
	if l.after.all == nil {
		return
	}
	t.inheritBefore(l)
	denied := t.reportHostnames(l)
	switch {
	case l.after.matchesNowhere():
		if !l.noHostnameMatches() || !denied && !l.before.matchesNowhere() { // else that was reported
			t.reportUnmatched(l)
		}
	case len(l.missing()) > 0:
		for _, at := range l.missing() {
			t.report(l.group(api.Warn, "more matches of triggers that no rule has"), func() Finding { return l.partFinding(at) })
		}
	case l.after.unmatched != nil:
		t.report(l.group(api.Warn, "more limits that bind to no rule of some routes"), l.someRoutesFinding)
	}
}

// inheritBefore sets what a limit was before the write if it was in another block of
// its policy.
func (t *Tracker) inheritBefore(l *total) {
	k := l.key
	for _, k.block = range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides} {
		if o := t.totals[k]; l.before.all == nil && o != nil && o.after.all == nil {
			l.before = o.before
		}
	}
}

// group is one of TriggerUnmatched.
func (l *total) group(action api.Action, more string) group {
	return group{l.kind, api.ReasonTriggerUnmatched, action, more}
}

// triggers returns those that the limit has after the write.
func (l *total) triggers() []ratelimit.Trigger { return l.after.last.bound.Limit.Triggers }

// reportHostnames reports hostnames of triggers by which no request reaches any of the
// routes. It returns whether the write is denied for one.
func (t *Tracker) reportHostnames(l *total) (denied bool) {
	for i, trigger := range l.triggers() {
		for _, name := range trigger.Hostnames {
			if l.after.hosts[name] {
				continue
			}
			action := api.Deny
			if l.before.all != nil && !l.before.hosts[name] && l.named(name) {
				action = api.Warn
			}
			denied = denied || action == api.Deny
			t.report(l.group(action, "more hostnames of triggers that do not match those of the routes"), func() Finding { return l.hostnameFinding(i, name) })
		}
	}
	return denied
}

// named reports whether the limit named a hostname before the write.
func (l *total) named(hostname string) bool {
	return slices.ContainsFunc(l.before.last.bound.Limit.Triggers, func(t ratelimit.Trigger) bool { return slices.Contains(t.Hostnames, hostname) })
}

func (l *total) hostnameFinding(trigger int, name string) Finding {
	return Finding{
		Rule:  l.key.rule.String(),
		Short: fmt.Sprintf("hostname %s of %s does not match those of %s", name, l.key.rule, routeText(l.after.last.on)),
		What: fmt.Sprintf("hostname %s of triggers[%d] of %s does not match the hostnames of %s: %s",
			name, trigger, l.key.rule, l.after.all.routesText(), l.after.last.hostnames()),
		Advice: "correct it, or add it to the route's hostnames",
	}
}

// hostnames lists those by which requests reach the route.
func (s *state) hostnames() string {
	var out []string
	for _, h := range s.on.Path.Hosts() {
		if h == "" {
			h = "any"
		}
		out = append(out, h)
	}
	return strings.Join(out, ", ")
}

// reportUnmatched reports that a limit of the policy that is written binds to nothing
// at all.
func (t *Tracker) reportUnmatched(l *total) {
	action := api.Deny
	if l.before.matchesNowhere() {
		action = api.Warn // an existing policy stays editable
	}
	t.report(l.group(action, "more limits that bind to no rule"), func() Finding {
		f := l.unmatchedFinding()
		if action == api.Warn {
			f.What += "; not introduced by this write"
		}
		return f
	})
}

func (l *total) unmatchedFinding() Finding {
	f := Finding{
		Rule:   l.key.rule.String(),
		Short:  fmt.Sprintf("%s binds to no rule of %s", l.key.rule, routeText(l.after.unmatched.first.on)),
		What:   fmt.Sprintf("%s binds to no rule of %s: %s", l.key.rule, l.after.unmatched.routesText(), l.missingText()),
		Advice: "use a match that the route has, or add a rule with this match to the route",
	}
	if len(l.missing()) == 0 {
		f.Advice = "use a match of the rules that it applies to"
	}
	return f
}

func (l *total) someRoutesFinding() Finding {
	short := fmt.Sprintf("%s binds to no rule of %d of %s", l.key.rule, l.after.unmatched.routes(), api.Plural(l.after.all.routes(), "route"))
	return Finding{
		Rule: l.key.rule.String(), Short: short,
		What:   short + ": " + l.after.unmatched.routesText(),
		Advice: "requests to them are not limited by it",
	}
}

// partFinding finds a match of a limit that selects nothing, while others do.
func (l *total) partFinding(at [2]int) Finding {
	return Finding{
		Rule:   l.key.rule.String(),
		Short:  fmt.Sprintf("%s is only partly bound: no rule has the match %s", l.key.rule, &l.triggers()[at[0]].Matches[at[1]]),
		What:   fmt.Sprintf("%s is only partly bound: %s, on %s", l.key.rule, l.noMatchText(at), l.after.all.routesText()),
		Advice: "its other matches are bound",
	}
}

// missing returns the matches, as positions of trigger and match, that no rule of any
// route has.
func (l *total) missing() [][2]int {
	var out [][2]int
	for i, trigger := range l.triggers() {
		for m := range trigger.Matches {
			if at := [2]int{i, m}; !l.after.found[at] {
				out = append(out, at)
			}
		}
	}
	return out
}

// noHostnameMatches reports whether no request reaches any of the routes by a hostname
// of the limit's triggers.
func (l *total) noHostnameMatches() bool {
	return !slices.ContainsFunc(l.triggers(), func(t ratelimit.Trigger) bool {
		return len(t.Hostnames) == 0 || slices.ContainsFunc(t.Hostnames, func(name string) bool { return l.after.hosts[name] })
	})
}

func (l *total) missingText() string {
	missing := l.missing()
	if len(missing) == 0 {
		text := fmt.Sprintf("the rules with the match %s are not those that it applies to", l.firstMatch())
		if l.hasOutside() {
			text += ", for its hostnames"
		}
		return text
	}
	var out []string
	for _, at := range missing[:min(len(missing), maxMatches)] {
		out = append(out, l.noMatchText(at))
	}
	if more := len(missing) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// hasOutside reports whether requests for some hostnames of the limit's triggers do
// not reach one of the routes.
func (l *total) hasOutside() bool {
	return slices.ContainsFunc(l.after.samples, func(s state) bool {
		return slices.ContainsFunc(s.bound.Triggers, func(c ratelimit.TriggerMatch) bool { return len(c.UnreachableHostnames) > 0 })
	})
}

// firstMatch names the first match of the limit's triggers.
func (l *total) firstMatch() string {
	for _, trigger := range l.triggers() {
		if len(trigger.Matches) > 0 {
			return trigger.Matches[0].String()
		}
	}
	return (&ratelimit.Match{}).String()
}

// noMatchText says that no rule has a match, and what the nearest ones are.
func (l *total) noMatchText(at [2]int) string {
	match := &l.triggers()[at[0]].Matches[at[1]]
	text := fmt.Sprintf("no rule has the match %s of triggers[%d].matches[%d]", match, at[0], at[1])
	near := l.nearest(match)
	switch r := l.after.last.on.Path.Route; {
	case len(near) > 0:
		return text + ", nearest: " + strings.Join(near, ", ")
	case len(r.Rules) == 0:
		return text + ": the route has no rules"
	case len(l.after.samples) > 0:
		return text // those that have matches are not shown
	default:
		return text + fmt.Sprintf(": rules of a %s have no matches", r.Kind)
	}
}

// nearest names the matches that are most like one, of the routes whose matches are
// shown.
func (l *total) nearest(m *ratelimit.Match) []string {
	var routes []*ratelimit.Route
	var shown []*gateway.Route
	for _, s := range l.after.samples {
		if l.reads(s.on.Path.Route.Namespace) {
			routes, shown = append(routes, s.index), append(shown, s.on.Path.Route)
		}
	}
	var out []string
	for _, n := range ratelimit.NearestOf(routes, m, maxMatches) {
		route := shown[n.Route]
		in := route.RuleName(n.Rule)
		if l.after.all.routes() > 1 {
			in += " of " + route.Ref().String()
		}
		out = append(out, fmt.Sprintf("%s (%s)", n.Text, in))
	}
	return out
}
