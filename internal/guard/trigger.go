package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// binding adds up what a write does to the limits of policies, path by path, route
// by route.
type binding struct {
	was, is effective.Binder
	unit    int // at hand: a route at a root
	limits  map[limitKey]*limitOnRoute
	tallies map[limitKey]*limitTally
	shadows map[shadowKey]*limitOn
	widened map[widenedKey]*limitOn
	hidden  map[hiddenKey]*policykind.Kind
	told    map[limitSort]int
}

// limitKey is what limits are told apart by: two blocks of one policy may each have
// its own of one name.
type limitKey struct {
	kind  api.PolicyKind
	at    merge.Key
	block merge.Block
	// namespace and name of the policy that it comes from.
	namespace, name string
}

func (k limitKey) ref() api.Ref {
	return api.Ref{Group: k.kind.Group, Kind: k.kind.Kind, Namespace: k.namespace, Name: k.name}
}

func (s *side) key(place int) limitKey {
	r := s.Rules[place]
	return limitKey{s.on.Kind.Ref(), r.Key, r.From.Block, r.From.Policy.Namespace, r.From.Policy.Name}
}

// limitOnRoute is a limit on one route at one root, before and after.
type limitOnRoute struct{ was, is limitSide }

type limitSide struct {
	on     *effective.Effective // the first path that it is in force on; nil for none
	policy *merge.Policy
	bound  *ratelimit.Bound
	index  *ratelimit.Route
	rules  int             // that it matches
	held   int             // that it is bound to
	fresh  []int           // rules that it did not match before the write
	inside map[string]bool // hostnames by which requests reach the route
}

// limitTally is a limit over all routes.
type limitTally struct {
	limitKey
	kind     *policykind.Kind
	shows    func(*gateway.Route) bool // its matches
	was, is  limitSum
	unbound  *limitOn // routes on which it was bound and matches nothing now
	stranded *limitOn // routes that are new to it, on which it matches nothing
	// missing are the texts of its matches that a rule had and none has now,
	// fresh the rules that it matches now and did not.
	missing, fresh map[string]*limitOn
}

// limitSum is what a limit comes to on all routes, before or after.
type limitSum struct {
	all, apart *limitOn // routes that it is in force on, and those of which it matches no rule
	found      map[[2]int]bool
	inside     map[string]bool
	last       limitSide // of the last route
	// some are routes with matches that others may be near to.
	some []limitSide
	// matches of these.
	matches int
}

// limitOn counts routes at their roots, or paths; the first stands for all.
type limitOn struct {
	kind  *policykind.Kind
	first limitSide
	count int
	// others than the first route.
	others map[*gateway.Route]struct{}
}

func (o *limitOn) add(kind *policykind.Kind, s limitSide) *limitOn {
	if o == nil {
		o = &limitOn{kind: kind, first: s}
	}
	o.count++
	if r := s.on.Path.Route; r != o.first.on.Path.Route && len(o.others) < mostOthers {
		if o.others == nil {
			o.others = make(map[*gateway.Route]struct{})
		}
		o.others[r] = struct{}{}
	}
	return o
}

// mostOthers is how many routes are counted each once; of more, those at several
// roots count at each.
const mostOthers = 64

// times returns how often it was added to; 0 where it never was.
func (o *limitOn) times() int {
	if o == nil {
		return 0
	}
	return o.count
}

// routes counts routes, each once.
func (o *limitOn) routes() int {
	if len(o.others) == mostOthers {
		return o.count
	}
	return 1 + len(o.others)
}

// shadowKey is a limit, and the one that is bound in its place.
type shadowKey struct{ limit, by limitKey }

// mostWidened is how many of these are told apart: few are told at all.
const mostWidened = 10_000

// widenedKey is a limit, and what it holds for though it does not ask for it.
type widenedKey struct {
	limit limitKey
	what  string
}

// bound books what limits bind to on a path.
func (ev *evaluation) bound(p effective.Pair, b boundPair) {
	if ev.binding.unit != p.Unit {
		ev.endRoute()
		ev.binding.unit = p.Unit
	}
	ev.inForce(b.was, ofWas)
	if p.Again || b.is == nil {
		return
	}
	ev.inForce(b.is, ofIs)
	ev.shadowed(b)
	ev.widens(p, b)
}

func ofWas(l *limitOnRoute) *limitSide { return &l.was }

func ofIs(l *limitOnRoute) *limitSide { return &l.is }

// pathless books what limits would bind to on routes that are on no path: no
// gateway takes them yet, or they have no rules. Those of the policy being written,
// or those of the policies that name the route being written.
func (ev *evaluation) pathless() {
	route, _ := ev.change.After.(*gateway.Route)
	was, _ := ev.change.Before.(*gateway.Route)
	switch {
	case ev.policy != nil && ev.policy.Binds && ev.policy.Invalid == nil && ev.ownPaths == 0:
		for _, t := range ev.after.Targets(ev.policy) {
			if r, ok := ev.after.Get(t.Ref).(*gateway.Route); ok && t.Refused == "" {
				ev.onPathless(r, r, ev.old, ev.policy, t)
			}
		}
	case route != nil && was != nil && !ev.hasPaths:
		for p, t := range ev.after.On(route.Ref()) {
			if p.Binds && p.Invalid == nil && t.Refused == "" {
				ev.onPathless(was, route, p, p, t)
			}
		}
	}
}

// onPathless books a policy on one such route, before and after.
func (ev *evaluation) onPathless(was, is *gateway.Route, old, policy *policykind.Policy, t policykind.Target) {
	if old != nil && old.Invalid == nil {
		ev.onTarget(&ev.binding.was, old, was, t, ofWas)
	}
	ev.onTarget(&ev.binding.is, policy, is, t, ofIs)
	ev.endRoute()
}

func (ev *evaluation) onTarget(b *effective.Binder, p *policykind.Policy, r *gateway.Route, t policykind.Target, of func(*limitOnRoute) *limitSide) {
	e := effective.Standalone(p, r)
	if len(r.Rules) == 0 {
		ev.inForce(sideOf(b, e), of)
	}
	for i := range r.Rules {
		if t.Section != "" && !r.RuleAt(t.Section, i) {
			continue
		}
		on := *e
		on.Path.Rule = i
		s := sideOf(b, &on)
		ev.inForce(s, of)
		if s != nil && p == ev.policy {
			ev.shadowed(boundPair{is: s})
			ev.widens(effective.Pair{After: &on}, boundPair{is: s})
		}
	}
}

// inForce books the limits that are in force on a path, on one side.
func (ev *evaluation) inForce(s *side, of func(*limitOnRoute) *limitSide) {
	if s == nil {
		return
	}
	if ev.binding.limits == nil {
		ev.binding.limits = make(map[limitKey]*limitOnRoute)
	}
	for i := range s.Rules {
		k := s.key(i)
		l := ev.binding.limits[k]
		if l == nil {
			l = &limitOnRoute{}
			ev.binding.limits[k] = l
		}
		at, bound := of(l), &s.Binding.Limits[i]
		if at.on == nil {
			at.on, at.index, at.policy = s.on, s.Route, s.Rules[i].From.Policy
		}
		if at.bound != bound { // paths of one route mostly share it
			at.bound = bound
			at.hosts()
		}
		if s.on.Path.Rule < len(s.on.Path.Route.Rules) && bound.Matches(s.on.Path.Rule) {
			at.rules++
			at.held += btoi(s.Binds(i))
		}
	}
}

// hosts notes the hostnames of triggers by which requests reach the route.
func (s *limitSide) hosts() {
	for t := range s.bound.Triggers {
		for _, name := range s.bound.Limit.Triggers[t].Hostnames {
			if slices.Contains(s.bound.Triggers[t].Outside, name) {
				continue
			}
			if s.inside == nil {
				s.inside = make(map[string]bool)
			}
			s.inside[name] = true
		}
	}
}

// endRoute adds what was booked of one route to the sums over all.
func (ev *evaluation) endRoute() {
	for k, l := range ev.binding.limits {
		if !ev.written(k) && l.unchanged() {
			continue
		}
		t := ev.binding.tallies[k]
		if t == nil {
			t = &limitTally{limitKey: k, shows: ev.showsMatches}
			if ev.binding.tallies == nil {
				ev.binding.tallies = make(map[limitKey]*limitTally)
			}
			ev.binding.tallies[k] = t
		}
		t.add(l)
	}
	clear(ev.binding.limits)
}

// unchanged reports whether there is nothing to be told of a limit that is not
// written itself.
func (l *limitOnRoute) unchanged() bool {
	if l.was.on == nil || l.is.on == nil {
		return l.is.on == nil
	}
	return l.was.rules == l.is.rules && l.was.held == l.is.held && len(l.is.fresh) == 0 &&
		slices.EqualFunc(l.was.bound.Triggers, l.is.bound.Triggers, func(a, b ratelimit.Chosen) bool { return slices.Equal(a.Found, b.Found) })
}

func (t *limitTally) add(l *limitOnRoute) {
	for _, s := range []*limitSide{&l.was, &l.is} {
		if s.on != nil {
			t.kind = s.on.Kind
		}
	}
	t.was.add(t.kind, l.was)
	t.is.add(t.kind, l.is)
	if l.is.on == nil {
		return
	}
	switch {
	case l.was.held > 0 && l.is.rules == 0:
		t.unbound = t.unbound.add(t.kind, l.is)
	case l.was.on == nil && l.is.rules == 0 && l.is.near():
		t.stranded = t.stranded.add(t.kind, l.is)
	case l.was.on != nil && l.is.rules > 0:
		t.lost(l)
		t.won(l)
	}
}

// won books the rules that a limit did not match before.
func (t *limitTally) won(l *limitOnRoute) {
	var had []string
	if len(l.is.fresh) > 0 {
		had = l.was.matched()
	}
	for _, rule := range l.is.fresh {
		texts := l.is.index.Texts(rule)
		if !slices.ContainsFunc(texts, func(text string) bool { return !slices.Contains(had, text) }) {
			continue // what it was bound to is in two rules now
		}
		if t.fresh == nil {
			t.fresh = make(map[string]*limitOn)
		}
		path := l.is.on.Path
		path.Rule = rule
		name := path.Element(gateway.LevelRule).String()
		t.fresh[name] = t.fresh[name].add(t.kind, l.is)
	}
}

// matched names the matches of the rules that the limit matches.
func (s *limitSide) matched() []string {
	var out []string
	if s.index == nil {
		return nil // no limit there had triggers
	}
	for rule := range s.index.Rules() {
		if s.bound.Matches(rule) {
			out = append(out, s.index.Texts(rule)...)
		}
	}
	return out
}

// near reports whether the limit's policy is attached to the route itself.
func (s *limitSide) near() bool { return s.on.Level(s.policy) >= gateway.LevelRoute }

// lost books the matches of a limit that some rule had and none has now.
func (t *limitTally) lost(l *limitOnRoute) {
	if len(l.was.bound.Triggers) != len(l.is.bound.Triggers) {
		return // it says something else now
	}
	for i := range l.is.bound.Triggers {
		had, has := l.was.bound.Triggers[i].Found, l.is.bound.Triggers[i].Found
		for m := range min(len(had), len(has)) {
			if had[m] && !has[m] {
				if t.missing == nil {
					t.missing = make(map[string]*limitOn)
				}
				text := hiddenMatch
				if t.shows(l.is.on.Path.Route) {
					text = l.is.bound.Limit.Triggers[i].Matches[m].String()
				}
				t.missing[text] = t.missing[text].add(t.kind, l.is)
			}
		}
	}
}

func (s *limitSum) add(kind *policykind.Kind, l limitSide) {
	if l.on == nil {
		return
	}
	s.all = s.all.add(kind, l)
	s.last = l
	s.sample(l)
	if l.rules == 0 {
		s.apart = s.apart.add(kind, l)
	}
	if s.found == nil {
		s.found, s.inside = make(map[[2]int]bool), make(map[string]bool)
	}
	for t := range l.bound.Triggers {
		for m, found := range l.bound.Triggers[t].Found {
			if found {
				s.found[[2]int{t, m}] = true
			}
		}
	}
	maps.Copy(s.inside, l.inside)
}

// mostMatchesNear is about how many matches of all routes are looked through for
// the nearest.
const mostMatchesNear = 1024

// sample keeps a route that has matches, as long as they are few.
func (s *limitSum) sample(l limitSide) {
	if l.index == nil || s.matches > mostMatchesNear || l.on.Path.Route.Kind != gateway.KindHTTPRoute ||
		slices.ContainsFunc(s.some, func(o limitSide) bool { return o.on.Path.Route == l.on.Path.Route }) {
		return
	}
	s.some, s.matches = append(s.some, l), s.matches+l.index.Matches()
}

// written reports whether a limit is one of the policy being written.
func (ev *evaluation) written(k limitKey) bool { return ev.policy != nil && ev.policy.Ref() == k.ref() }

// shadowed books the limits that match the path's rule and are not bound to it:
// those that the policy being written is concerned with, and those that were.
func (ev *evaluation) shadowed(b boundPair) {
	all := b.is.Matching()
	if len(all) < 2 {
		return
	}
	by := b.is.key(all[0])
	for _, i := range all[1:] {
		k := b.is.key(i)
		if !ev.written(k) && !ev.written(by) && shadowedBefore(b.was, b.is, i, all[0]) {
			continue
		}
		at := shadowKey{k, by}
		if ev.binding.shadows == nil {
			ev.binding.shadows = make(map[shadowKey]*limitOn)
		}
		ev.binding.shadows[at] = ev.binding.shadows[at].add(b.is.on.Kind, limitSide{on: b.is.on})
	}
}

func shadowedBefore(was, is *side, limit, by int) bool {
	l, h := was.find(is.Rules[limit].Key, is.Rules[limit].From.Policy), was.find(is.Rules[by].Key, is.Rules[by].From.Policy)
	return l >= 0 && h >= 0 && was.Holder() == h && was.Binding.Limits[l].Matches(was.on.Path.Rule)
}

// widens books what a limit with triggers holds for beyond what it asks for: of
// the policy being written the other matches of the rules that it is bound to; of
// others what the write adds to it.
func (ev *evaluation) widens(p effective.Pair, b boundPair) {
	holder := b.is.Holder()
	if holder < 0 || len(b.is.Binding.Limits[holder].Triggers) == 0 {
		return
	}
	k, bound, rule := b.is.key(holder), &b.is.Binding.Limits[holder], p.After.Path.Rule
	if ev.written(k) {
		for _, text := range bound.AlsoMatches(rule) {
			ev.widen(k, text, p.After)
		}
		return
	}
	was := b.was.find(b.is.Rules[holder].Key, b.is.Rules[holder].From.Policy)
	if was < 0 || !b.was.Binding.Limits[was].Matches(p.Before.Path.Rule) {
		l := ev.binding.limits[k]
		l.is.fresh = append(l.is.fresh, rule)
		return
	}
	if !b.was.Triggered() {
		return // it was bound to every rule
	}
	had, has := b.was.Route.Texts(p.Before.Path.Rule), b.is.Route.Texts(rule)
	if slices.ContainsFunc(had, func(text string) bool { return !slices.Contains(has, text) }) {
		has = bound.AlsoMatches(rule) // the rule has others now; it is asked for those that the limit chooses
	}
	if slices.ContainsFunc(has, func(text string) bool { return !slices.Contains(had, text) }) {
		had = (&limitSide{bound: &b.was.Binding.Limits[was], index: b.was.Route}).matched() // it may have been another rule's
	}
	for _, text := range has {
		if !slices.Contains(had, text) {
			ev.widen(k, text, p.After)
		}
	}
}

func (ev *evaluation) widen(k limitKey, what string, e *effective.Effective) {
	if !ev.showsMatches(e.Path.Route) {
		what = hiddenMatch
	}
	at := widenedKey{k, what}
	if ev.binding.widened == nil {
		ev.binding.widened = make(map[widenedKey]*limitOn)
	}
	if len(ev.binding.widened) >= mostWidened && ev.binding.widened[at] == nil {
		return
	}
	ev.binding.widened[at] = ev.binding.widened[at].add(e.Kind, limitSide{on: e})
}

func compareLimits(a, b limitKey) int {
	return cmp.Or(api.CompareRefs(a.ref(), b.ref()), strings.Compare(a.at.String(), b.at.String()), cmp.Compare(a.block, b.block))
}

// hiddenMatch stands for a match of a route that the writer may not be allowed to read.
const hiddenMatch = "(not shown)"

// showsMatches reports whether messages show the matches of a route: to writers of
// its namespace.
func (ev *evaluation) showsMatches(r *gateway.Route) bool {
	return ev.ShowValues || r.Namespace == ev.writtenRef().Namespace
}

// routeOf names the route of a path.
func routeOf(e *effective.Effective) string { return e.Path.Route.Ref().String() }

// onRoutes names the first of some routes.
func (o *limitOn) onRoutes() string {
	text := routeOf(o.first.on)
	if more := o.routes() - 1; more > 0 {
		text += " and " + plural(more, "more route")
	}
	return text
}

// onRules names the first of some rules of routes.
func (o *limitOn) onRules() string {
	text := fmt.Sprintf("%s of %s", o.first.on.Path.Route.RuleName(o.first.on.Path.Rule), routeOf(o.first.on))
	if o.count > 1 {
		text += " and " + plural(o.count-1, "more path")
	}
	return text
}
