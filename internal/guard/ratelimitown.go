package guard

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// ownLimit is a limit of the policy that is written, before and after the write.
type ownLimit struct {
	*limitTally

	key           limitKey
	before, after *limitSum
}

// limitSum is a limit on all routes, before or after the write.
type limitSum struct {
	all, unmatched limitPlaces     // routes that it is in force on, and those of which it matches no rule
	found          map[[2]int]bool // matches, as positions of trigger and match, that some rule has
	hosts          map[string]bool // hostnames of its triggers: whether requests for it reach some route
	outside        bool            // requests for one of them do not reach one of the routes
	last           limitState      // of the last route
	// samples are routes with matches, in which the nearest matches are looked up, and
	// matches their number.
	samples []*ratelimit.Route
	matches int
}

// addBound adds what the limit selects of a route.
func (s *limitSum) addBound(b *ratelimit.Bound) {
	for t, trigger := range b.Triggers {
		for m, found := range trigger.Found {
			if found {
				put(&s.found, [2]int{t, m}, true)
			}
		}
		names := b.Limit.Triggers[t].Hostnames
		for _, name := range names {
			put(&s.hosts, name, s.hosts[name])
		}
		for _, name := range trigger.Reachable {
			s.hosts[name] = true
		}
		s.outside = s.outside || len(trigger.Reachable) < len(names)
	}
}

// add adds a route. One that has matches is kept as a sample, as long as they are few.
func (s *limitSum) add(l *limitState) {
	s.all.add(*l)
	s.last = *l
	if !l.matched {
		s.unmatched.add(*l)
	}
	r := l.bound.Route
	if r != nil && s.matches <= maxSampledMatches && r.Of.Kind == gateway.KindHTTPRoute &&
		!slices.ContainsFunc(s.samples, func(o *ratelimit.Route) bool { return o.Of == r.Of }) {
		s.samples, s.matches = append(s.samples, r), s.matches+r.Matches()
	}
}

// ownBefore returns what a limit was before the write, in another block of its policy
// if it was in that.
func (t *limitTally) ownBefore(k limitKey) *limitSum {
	for _, block := range []merge.Block{k.block, merge.Defaults, merge.Bare, merge.Overrides} {
		at := limitKey{k.policy, k.rule, block}
		if was := t.before.own.entries[at]; was != nil && (at == k || t.after.own.entries[at] == nil) {
			return was
		}
	}
	return &limitSum{}
}

// matchesNowhere reports whether the limit is in force on routes, and matches no rule
// of any.
func (s *limitSum) matchesNowhere() bool {
	return s.all.count > 0 && s.unmatched.count == s.all.count
}

// reportOwn reports what is wrong with a limit of the policy that is written: it binds
// to nothing, or only in part.
func (l *ownLimit) reportOwn() {
	denied := l.reportHostnames()
	switch missing := l.missing(); {
	case l.after.matchesNowhere():
		if !l.noHostnameMatches() || !denied && !l.before.matchesNowhere() { // else that was reported
			l.reportUnmatched()
		}
	case len(missing) > 0:
		for _, at := range missing {
			l.reportGroup(api.Warn, "more matches of triggers that no rule has: %d", func() Finding { return l.partFinding(at) })
		}
	case l.after.unmatched.count > 0:
		l.reportGroup(api.Warn, "more limits that bind to no rule of some routes: %d", l.someRoutesFinding)
	}
}

// reportGroup reports a finding of TriggerUnmatched.
func (l *ownLimit) reportGroup(action api.Action, more string, build func() Finding) {
	l.report(limitGroup{l.after.last.on.Kind, api.ReasonTriggerUnmatched, action, more}, build)
}

// triggers returns those that the limit has after the write.
func (l *ownLimit) triggers() []ratelimit.Trigger { return l.after.last.bound.Limit.Triggers }

// reportHostnames reports hostnames of triggers by which no request reaches any of the
// routes. It returns whether the write is denied for one.
func (l *ownLimit) reportHostnames() (denied bool) {
	for i, trigger := range l.triggers() {
		for _, name := range trigger.Hostnames {
			if l.after.hosts[name] {
				continue
			}
			action := api.Deny
			if reached, named := l.before.hosts[name]; named && !reached {
				action = api.Warn
			}
			denied = denied || action == api.Deny
			l.reportGroup(action, "more hostnames of triggers that do not match those of the routes: %d", func() Finding { return l.hostnameFinding(i, name) })
		}
	}
	return denied
}

func (l *ownLimit) hostnameFinding(trigger int, name string) Finding {
	hosts := slices.Clone(l.after.last.on.Path.Hosts())
	if i := slices.Index(hosts, ""); i >= 0 {
		hosts[i] = "any"
	}
	what := fmt.Sprintf("hostname %s of triggers[%d] of %s does not match the hostnames of %s: %s",
		name, trigger, l.key.rule, l.after.all.routesText(), strings.Join(hosts, ", "))
	short := fmt.Sprintf("hostname %s of %s does not match those of %s", name, l.key.rule, routeText(l.after.last.on))
	return l.key.finding(what, short, "correct it, or add it to the route's hostnames")
}

// reportUnmatched reports that a limit of the policy that is written binds to nothing
// at all.
func (l *ownLimit) reportUnmatched() {
	action, note := api.Deny, ""
	if l.before.matchesNowhere() { // an existing policy stays editable
		action, note = api.Warn, "; not introduced by this write"
	}
	l.reportGroup(action, "more limits that bind to no rule: %d", func() Finding {
		what := fmt.Sprintf("%s binds to no rule of ", l.key.rule)
		advice := "use a match that the route has, or add a rule with this match to the route"
		if len(l.missing()) == 0 {
			advice = "use a match of the rules that it applies to"
		}
		return l.key.finding(what+l.after.unmatched.routesText()+": "+l.missingText()+note, what+routeText(l.after.unmatched.first.on), advice)
	})
}

func (l *ownLimit) someRoutesFinding() Finding {
	short := fmt.Sprintf("%s binds to no rule of %d of %s", l.key.rule, l.after.unmatched.routes(), api.Plural(l.after.all.routes(), "route"))
	return l.key.finding(short+": "+l.after.unmatched.routesText(), short, "requests to them are not limited by it")
}

// partFinding finds a match of a limit that selects nothing, while others do.
func (l *ownLimit) partFinding(at [2]int) Finding {
	what := fmt.Sprintf("%s is only partly bound: ", l.key.rule)
	short := fmt.Sprintf("no rule has the match %s", &l.triggers()[at[0]].Matches[at[1]])
	return l.key.finding(what+l.noMatchText(at)+", on "+l.after.all.routesText(), what+short, "its other matches are bound")
}

// missing returns the positions of the matches that no rule of any route has.
func (l *ownLimit) missing() [][2]int {
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
func (l *ownLimit) noHostnameMatches() bool {
	return !slices.ContainsFunc(l.triggers(), func(t ratelimit.Trigger) bool {
		return len(t.Hostnames) == 0 || slices.ContainsFunc(t.Hostnames, func(name string) bool { return l.after.hosts[name] })
	})
}

func (l *ownLimit) missingText() string {
	missing := l.missing()
	if len(missing) == 0 {
		text := fmt.Sprintf("the rules with the match %s are not those that it applies to", l.firstMatch())
		if l.after.outside {
			text += ", for its hostnames"
		}
		return text
	}
	var out []string
	for _, at := range missing[:min(len(missing), maxMissingMatches)] {
		out = append(out, l.noMatchText(at))
	}
	return strings.Join(out, "; ") + api.More("; and ", len(missing)-len(out), "")
}

// firstMatch names the first match of the limit's triggers.
func (l *ownLimit) firstMatch() *ratelimit.Match {
	for _, trigger := range l.triggers() {
		if len(trigger.Matches) > 0 {
			return &trigger.Matches[0]
		}
	}
	return &ratelimit.Match{}
}

// noMatchText says that no rule has a match, and what the nearest ones are.
func (l *ownLimit) noMatchText(at [2]int) string {
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
func (l *ownLimit) nearest(m *ratelimit.Match) []string {
	shown := slices.DeleteFunc(slices.Clone(l.after.samples), func(r *ratelimit.Route) bool { return !l.ev.reads(r.Of.Namespace) })
	var out []string
	for _, n := range ratelimit.NearestOf(shown, m, maxMissingMatches) {
		route := shown[n.Route].Of
		in := route.RuleName(n.Rule)
		if l.after.all.routes() > 1 {
			in += " of " + route.Ref().String()
		}
		out = append(out, fmt.Sprintf("%s (%s)", n.Text, in))
	}
	return out
}
