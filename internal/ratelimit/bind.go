package ratelimit

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/gateway"
)

// Limits are the limits that are in force together, in the order in which they bind: of
// several that match a rule, the first is bound to it and shadows the others.
type Limits struct {
	All         []*Limit
	criteria    [][][][]string // by limit, trigger and match
	untriggered bool           // no limit has triggers
}

// NewLimits returns limits in the given order.
func NewLimits(all []*Limit) *Limits {
	out := &Limits{All: all, criteria: make([][][][]string, len(all)), untriggered: true}
	for i, l := range all {
		out.criteria[i] = make([][][]string, len(l.Triggers))
		out.untriggered = out.untriggered && len(l.Triggers) == 0
		for t := range l.Triggers {
			for m := range l.Triggers[t].Matches {
				out.criteria[i][t] = append(out.criteria[i][t], criteria(&l.Triggers[t].Matches[m].HTTPRouteMatch))
			}
		}
	}
	return out
}

// Join concatenates several Limits.
func Join(all []*Limits) *Limits {
	out := &Limits{untriggered: true}
	for _, l := range all {
		out.All, out.criteria, out.untriggered = append(out.All, l.All...), append(out.criteria, l.criteria...), out.untriggered && l.untriggered
	}
	return out
}

// Triggered reports whether a limit has triggers. Otherwise they bind to the rules of
// all routes in the same way.
func (l *Limits) Triggered() bool { return !l.untriggered }

// Binding is the result of binding limits to a route.
type Binding struct {
	Route *Route
	// Limits in the order of the bound Limits.
	Limits []Bound
}

// Bound is what a limit matches of a route.
type Bound struct {
	*Limit
	// Triggers in the order of the limit.
	Triggers []TriggerMatch

	route   *Route
	matched bitset // nil for all matches
}

// TriggerMatch is what a trigger selects of a route.
type TriggerMatch struct {
	// UnreachableHostnames are the hostnames of the trigger for which no request reaches
	// the route. If all are unreachable, the trigger selects nothing.
	UnreachableHostnames []string
	// Found is, for each match of the trigger, whether a rule has it, regardless of
	// hostnames.
	Found []bool

	matched          bitset
	hostnameExcluded bitset // what it would select without its hostnames; nil if it does select it
}

// Bind binds limits to the rules of a route. hosts are the hostnames of the requests
// that reach it, "" for any (gateway.Path.Hosts).
func (l *Limits) Bind(r *Route, hosts []string) *Binding {
	out := &Binding{Route: r, Limits: make([]Bound, len(l.All))}
	for i, limit := range l.All {
		b := &out.Limits[i]
		b.Limit, b.route = limit, r
		if len(limit.Triggers) == 0 {
			continue
		}
		b.matched = newBitset(len(r.matches))
		b.Triggers = make([]TriggerMatch, len(limit.Triggers))
		for t := range limit.Triggers {
			b.Triggers[t] = r.matchTrigger(&limit.Triggers[t], l.criteria[i][t], hosts)
			b.matched.union(b.Triggers[t].matched)
		}
	}
	return out
}

// matchTrigger returns what a trigger selects. criteria are those of its matches.
func (r *Route) matchTrigger(t *Trigger, facts [][]string, hosts []string) TriggerMatch {
	out := TriggerMatch{Found: make([]bool, len(facts)), matched: newBitset(len(r.matches))}
	for _, name := range t.Hostnames {
		if !slices.ContainsFunc(hosts, func(h string) bool { return gateway.HostnamesIntersect(name, h) }) {
			out.UnreachableHostnames = append(out.UnreachableHostnames, name)
		}
	}
	if len(facts) == 0 {
		out.matched.union(r.allMatches)
	}
	for m, of := range facts {
		out.Found[m] = out.matched.union(r.matchesWith(of))
	}
	if len(t.Hostnames) > 0 && len(out.UnreachableHostnames) == len(t.Hostnames) {
		out.matched, out.hostnameExcluded = nil, out.matched
	}
	return out
}

// Hostnames returns the hostnames of the requests to which the limit applies at a rule,
// sorted; nil for all that reach the route.
func (b *Bound) Hostnames(rule int) []string {
	var out []string
	for t := range b.Triggers {
		if !b.route.ruleHasMatch(b.Triggers[t].matched, rule) {
			continue
		}
		names := b.Limit.Triggers[t].Hostnames
		if len(names) == 0 {
			return nil
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Matches reports whether the limit matches a rule. It is bound to the rule unless an
// earlier limit shadows it.
func (b *Bound) Matches(rule int) bool {
	return b.matched == nil || b.route.ruleHasMatch(b.matched, rule)
}

// ExcludingHostnames returns the hostnames of the triggers that match a rule except for
// their hostnames; nil if the limit matches the rule, or no trigger does.
func (b *Bound) ExcludingHostnames(rule int) []string {
	if b.Matches(rule) {
		return nil
	}
	var out []string
	for t := range b.Triggers {
		if apart := b.Triggers[t].hostnameExcluded; apart != nil && b.route.ruleHasMatch(apart, rule) {
			out = append(out, b.Limit.Triggers[t].Hostnames...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ExcludedByHostnames reports whether the limit matches no rule only because of the
// hostnames of its triggers.
func (b *Bound) ExcludedByHostnames() bool {
	return !b.MatchesAny() && slices.ContainsFunc(b.Triggers, func(c TriggerMatch) bool { return c.hostnameExcluded != nil && c.hostnameExcluded.next(0) >= 0 })
}

// MatchesAny reports whether the limit matches any rule of the route.
func (b *Bound) MatchesAny() bool { return b.matched == nil || b.matched.next(0) >= 0 }

// ruleHasMatch reports whether a set contains a match of a rule.
func (r *Route) ruleHasMatch(s bitset, rule int) bool {
	i := s.next(r.ruleStarts[rule])
	return i >= 0 && i < r.ruleStarts[rule+1]
}

// At returns the indexes of the limits that match a rule: the first is bound to it, the
// others are shadowed.
func (b *Binding) At(rule int) []int {
	var out []int
	for i := range b.Limits {
		if b.Limits[i].Matches(rule) {
			out = append(out, i)
		}
	}
	return out
}

// First returns the index of the limit that is bound to a rule, or -1.
func (b *Binding) First(rule int) int {
	return slices.IndexFunc(b.Limits, func(l Bound) bool { return l.Matches(rule) })
}

// By returns the matches of a rule that the triggers of the limit select.
func (b *Bound) By(rule int) []string { return b.texts(rule, true) }

// AlsoMatches returns the other matches of a rule that a limit with triggers matches: the
// limit also applies to their requests, which its triggers do not select. There are none
// if a trigger selects every rule.
func (b *Bound) AlsoMatches(rule int) []string { return b.texts(rule, false) }

func (b *Bound) texts(rule int, chosen bool) []string {
	var out []string
	if b.matched == nil || !b.Matches(rule) {
		return nil
	}
	for i := b.route.ruleStarts[rule]; i < b.route.ruleStarts[rule+1]; i++ {
		if b.matched.has(i) == chosen {
			out = append(out, matchText(&b.route.matches[i]))
		}
	}
	return out
}

// Texts returns the matches of a rule for messages.
func (r *Route) Texts(rule int) []string {
	var out []string
	for i := range r.RuleMatches(rule) {
		out = append(out, matchText(&r.matches[r.ruleStarts[rule]+i]))
	}
	return out
}

// RuleMatches returns the matches of a rule with the defaults of the API server. The
// result is shared and must not be edited.
func (r *Route) RuleMatches(rule int) []gatewayv1.HTTPRouteMatch {
	return r.matches[r.ruleStarts[rule]:r.ruleStarts[rule+1]]
}
