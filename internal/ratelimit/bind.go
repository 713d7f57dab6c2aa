package ratelimit

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/gateway"
)

// Limits are those that are in force together, in the order in which they bind: of
// several that match a rule the first is bound to it, and shadows the others
// there.
type Limits struct {
	All   []*Limit
	facts [][][][]string // of limit, trigger and match
	plain bool           // none has triggers
}

// NewLimits returns limits in the order that they have.
func NewLimits(all []*Limit) *Limits {
	out := &Limits{All: all, facts: make([][][][]string, len(all)), plain: true}
	for i, l := range all {
		out.facts[i] = make([][][]string, len(l.Triggers))
		out.plain = out.plain && len(l.Triggers) == 0
		for t := range l.Triggers {
			for m := range l.Triggers[t].Matches {
				out.facts[i][t] = append(out.facts[i][t], facts(&l.Triggers[t].Matches[m].HTTPRouteMatch))
			}
		}
	}
	return out
}

// Join returns the limits of several in their order.
func Join(all []*Limits) *Limits {
	out := &Limits{plain: true}
	for _, l := range all {
		out.All, out.facts, out.plain = append(out.All, l.All...), append(out.facts, l.facts...), out.plain && l.plain
	}
	return out
}

// Triggered reports whether any of them has triggers: else they bind to the rules
// of all routes alike.
func (l *Limits) Triggered() bool { return !l.plain }

// Binding is what limits bind to of one route.
type Binding struct {
	Route *Route
	// Limits, as they were given.
	Limits []Bound
}

// Bound is what one limit matches of a route.
type Bound struct {
	*Limit
	// Triggers, as the limit has them.
	Triggers []Chosen

	route  *Route
	chosen set // nil for every match of every rule
}

// Chosen is what a trigger chooses of a route.
type Chosen struct {
	// Outside are those of its hostnames by which no request reaches the route.
	// Where they are all that it has, it chooses nothing.
	Outside []string
	// Found tells for each of its matches whether some rule has it, whatever the
	// hostnames.
	Found []bool

	chosen set
	apart  set // what it would choose, but for its hostnames; nil if it does
}

// Bind binds limits to the rules of a route that requests for some hostnames
// reach, "" for any (hierarchy.Path.Hosts).
func (l *Limits) Bind(r *Route, hosts []string) *Binding {
	out := &Binding{Route: r, Limits: make([]Bound, len(l.All))}
	for i, limit := range l.All {
		b := &out.Limits[i]
		b.Limit, b.route = limit, r
		if len(limit.Triggers) == 0 {
			continue
		}
		b.chosen = newSet(len(r.matches))
		b.Triggers = make([]Chosen, len(limit.Triggers))
		for t := range limit.Triggers {
			b.Triggers[t] = r.choose(&limit.Triggers[t], l.facts[i][t], hosts)
			b.chosen.join(b.Triggers[t].chosen)
		}
	}
	return out
}

// choose returns what a trigger chooses; facts are those of its matches.
func (r *Route) choose(t *Trigger, facts [][]string, hosts []string) Chosen {
	out := Chosen{Found: make([]bool, len(facts)), chosen: newSet(len(r.matches))}
	for _, name := range t.Hostnames {
		if !slices.ContainsFunc(hosts, func(h string) bool { return gateway.HostnamesIntersect(name, h) }) {
			out.Outside = append(out.Outside, name)
		}
	}
	if len(facts) == 0 {
		out.chosen.join(r.every)
	}
	for m, of := range facts {
		out.Found[m] = out.chosen.join(r.chosen(of))
	}
	if len(t.Hostnames) > 0 && len(out.Outside) == len(t.Hostnames) {
		out.chosen, out.apart = nil, out.chosen
	}
	return out
}

// Hostnames returns those that requests must be for where the limit matches a
// rule, sorted; nil for all that reach the route.
func (b *Bound) Hostnames(rule int) []string {
	var out []string
	for t := range b.Triggers {
		if !b.route.within(b.Triggers[t].chosen, rule) {
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

// Matches reports whether the limit matches a rule: it is bound to it, unless one
// before it shadows it there.
func (b *Bound) Matches(rule int) bool {
	return b.chosen == nil || b.route.within(b.chosen, rule)
}

// KeptBy returns the hostnames that alone keep the limit from a rule, whose matches its
// triggers choose; nil where something else does, or nothing.
func (b *Bound) KeptBy(rule int) []string {
	if b.Matches(rule) {
		return nil
	}
	var out []string
	for t := range b.Triggers {
		if apart := b.Triggers[t].apart; apart != nil && b.route.within(apart, rule) {
			out = append(out, b.Limit.Triggers[t].Hostnames...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ExcludedByHostnames reports whether it is its hostnames alone that keep the limit from every
// rule that has a match of its triggers.
func (b *Bound) ExcludedByHostnames() bool {
	return !b.MatchesAny() && slices.ContainsFunc(b.Triggers, func(c Chosen) bool { return c.apart != nil && c.apart.next(0) >= 0 })
}

// MatchesAny reports whether the limit matches any rule of the route.
func (b *Bound) MatchesAny() bool { return b.chosen == nil || b.chosen.next(0) >= 0 }

// within reports whether a set has a match of a rule.
func (r *Route) within(s set, rule int) bool {
	i := s.next(r.starts[rule])
	return i >= 0 && i < r.starts[rule+1]
}

// At returns the limits that match a rule, by their place: the first is bound to
// it, the others are shadowed.
func (b *Binding) At(rule int) []int {
	var out []int
	for i := range b.Limits {
		if b.Limits[i].Matches(rule) {
			out = append(out, i)
		}
	}
	return out
}

// First returns the place of the limit that is bound to a rule, or -1.
func (b *Binding) First(rule int) int {
	return slices.IndexFunc(b.Limits, func(l Bound) bool { return l.Matches(rule) })
}

// By names the matches of a rule by which a limit with triggers matches it.
func (b *Bound) By(rule int) []string { return b.texts(rule, true) }

// AlsoMatches names the other matches of a rule that a limit with triggers matches: it
// limits their requests, too, though it does not ask for them. Where one trigger
// chooses every rule, there are none.
func (b *Bound) AlsoMatches(rule int) []string { return b.texts(rule, false) }

func (b *Bound) texts(rule int, chosen bool) []string {
	var out []string
	if b.chosen == nil || !b.Matches(rule) {
		return nil
	}
	for i := b.route.starts[rule]; i < b.route.starts[rule+1]; i++ {
		if b.chosen.has(i) == chosen {
			out = append(out, textOf(&b.route.matches[i]))
		}
	}
	return out
}

// Texts names the matches of a rule.
func (r *Route) Texts(rule int) []string {
	var out []string
	for i := range r.RuleMatches(rule) {
		out = append(out, textOf(&r.matches[r.starts[rule]+i]))
	}
	return out
}

// RuleMatches returns the matches of a rule, defaulted as the API server would;
// shared, not to be edited.
func (r *Route) RuleMatches(rule int) []gatewayv1.HTTPRouteMatch {
	return r.matches[r.starts[rule]:r.starts[rule+1]]
}
