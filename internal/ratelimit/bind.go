package ratelimit

import (
	"math/big"
	"slices"

	"overrule.dev/overrule/internal/gateway"
)

// Binding is what limits that are in force together match of a route, in the order in which
// they bind: of several that match a rule, the first is bound to it and shadows the others.
type Binding []Bound

// Bound is what a limit matches of a route.
type Bound struct {
	*Limit
	// Route is nil if none of the limits of the binding has triggers.
	Route *Route
	// Triggers in the order of the limit.
	Triggers []TriggerMatch

	matched *big.Int // the set of matches, nil for all
}

// TriggerMatch is what a trigger selects of a route.
type TriggerMatch struct {
	// Reachable are the hostnames of the trigger for which requests reach the route. If it
	// has hostnames and none is, it selects nothing.
	Reachable []string
	// Found is, for each match of the trigger, whether a rule has it, regardless of
	// hostnames.
	Found []bool

	matches  *big.Int // the set that it selects, or would without its hostnames
	excluded bool     // no request for its hostnames reaches the route
}

// Bind binds limits, in their order, to the rules of a route. hosts are the hostnames of
// the requests that reach it, "" for any (gateway.Path.Hosts). The route may be nil if no
// limit has triggers.
func Bind(limits []*Limit, r *Route, hosts []string) Binding {
	out := make(Binding, len(limits))
	for i, limit := range limits {
		b := &out[i]
		b.Limit, b.Route = limit, r
		if len(limit.Triggers) == 0 {
			continue
		}
		b.matched = new(big.Int)
		for t := range limit.Triggers {
			selected := r.selectedBy(&limit.Triggers[t], hosts)
			if !selected.excluded {
				b.matched.Or(b.matched, selected.matches)
			}
			b.Triggers = append(b.Triggers, selected)
		}
	}
	return out
}

func (r *Route) selectedBy(t *Trigger, hosts []string) TriggerMatch {
	out := TriggerMatch{Found: make([]bool, len(t.Matches)), matches: new(big.Int)}
	for _, name := range t.Hostnames {
		if gateway.HostsIntersect([]string{name}, hosts) {
			out.Reachable = append(out.Reachable, name)
		}
	}
	out.excluded = len(t.Hostnames) > 0 && len(out.Reachable) == 0
	if len(t.Matches) == 0 {
		out.matches.Set(r.allMatches)
	}
	for m := range t.Matches {
		has := r.matchesWith(t.Matches[m].Criteria)
		out.Found[m] = has.Sign() > 0
		out.matches.Or(out.matches, has)
	}
	return out
}

// Matches reports whether the limit matches a rule. It is bound to the rule unless an
// earlier limit shadows it.
func (b *Bound) Matches(rule int) bool {
	return b.matched == nil || b.Route.ruleHasMatch(b.matched, rule)
}

// MatchesAny reports whether the limit matches any rule of the route.
func (b *Bound) MatchesAny() bool { return b.matched == nil || b.matched.Sign() > 0 }

// Hostnames returns the hostnames of the requests to which the limit applies at a rule,
// sorted; nil for all that reach the route. Of a limit that does not match the rule, they
// are those without which it would.
func (b *Bound) Hostnames(rule int) []string {
	var out []string
	matches := b.Matches(rule)
	for i := range b.Triggers {
		t := &b.Triggers[i]
		if matches && t.excluded || !b.Route.ruleHasMatch(t.matches, rule) {
			continue
		}
		names := b.Limit.Triggers[i].Hostnames
		if len(names) == 0 {
			return nil
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ExcludedByHostnames reports whether the limit matches no rule only because of the
// hostnames of its triggers.
func (b *Bound) ExcludedByHostnames() bool {
	return !b.MatchesAny() && slices.ContainsFunc(b.Triggers, func(t TriggerMatch) bool { return t.matches.Sign() > 0 })
}

// At returns the indexes of the limits that match a rule: the first is bound to it, the
// others are shadowed.
func (b Binding) At(rule int) []int {
	var out []int
	for i := range b {
		if b[i].Matches(rule) {
			out = append(out, i)
		}
	}
	return out
}

// First returns the index of the limit that is bound to a rule, or -1.
func (b Binding) First(rule int) int {
	return slices.IndexFunc(b, func(l Bound) bool { return l.Matches(rule) })
}

// By returns the matches of a rule that the triggers of the limit select.
func (b *Bound) By(rule int) []string { return b.texts(rule, true) }

// AlsoMatches returns the other matches of a rule that a limit with triggers matches: the
// limit also applies to their requests, which its triggers do not select. There are none
// if a trigger selects every rule.
func (b *Bound) AlsoMatches(rule int) []string { return b.texts(rule, false) }

func (b *Bound) texts(rule int, selected bool) []string {
	var out []string
	if b.matched == nil || !b.Matches(rule) {
		return nil
	}
	for i := b.Route.ruleStarts[rule]; i < b.Route.ruleStarts[rule+1]; i++ {
		if (b.matched.Bit(i) == 1) == selected {
			out = append(out, b.Route.text(i))
		}
	}
	return out
}
