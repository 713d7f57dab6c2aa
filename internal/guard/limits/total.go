package limits

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

// key identifies a limit: two blocks of one policy may each have one of its name.
type key struct {
	kind  api.PolicyKind
	rule  merge.Key
	block merge.Block
	// namespace and name of the policy that it comes from.
	namespace, name string
}

func (k key) ref() api.Ref {
	return api.Ref{Group: k.kind.Group, Kind: k.kind.Kind, Namespace: k.namespace, Name: k.name}
}

func compareKeys(a, b key) int {
	return cmp.Or(api.CompareRefs(a.ref(), b.ref()), strings.Compare(a.rule.String(), b.rule.String()), cmp.Compare(a.block, b.block))
}

// routeLimit is a limit on one route at one root, before and after the write.
type routeLimit struct{ before, after state }

func stateBefore(l *routeLimit) *state { return &l.before }

func stateAfter(l *routeLimit) *state { return &l.after }

// state is a limit on one route at one root, at one time.
type state struct {
	on      *effective.Effective // the first path that it is in force on; nil for none
	policy  *merge.Policy
	bound   *ratelimit.Bound
	index   *ratelimit.Route
	matched int             // number of rules that it matches
	holds   int             // number of rules that it is bound to
	added   []int           // rules that it did not match before the write
	hosts   map[string]bool // hostnames of its triggers by which requests reach the route
}

// add adds the limit at a place of a path.
func (s *state) add(p *Path, place int) {
	if s.on == nil {
		s.on, s.index, s.policy = p.effective, p.bound.Route, p.bound.Rules[place].From.Policy
	}
	if bound := p.limit(place); s.bound != bound { // paths of one route mostly share it
		s.bound = bound
		s.addHosts()
	}
	if p.rule() < len(p.effective.Path.Route.Rules) && s.bound.Matches(p.rule()) {
		s.matched++
		if p.bound.Binds(place) {
			s.holds++
		}
	}
}

// addHosts adds the hostnames of triggers by which requests reach the route.
func (s *state) addHosts() {
	for i := range s.bound.Triggers {
		for _, name := range s.bound.Limit.Triggers[i].Hostnames {
			if slices.Contains(s.bound.Triggers[i].UnreachableHostnames, name) {
				continue
			}
			if s.hosts == nil {
				s.hosts = make(map[string]bool)
			}
			s.hosts[name] = true
		}
	}
}

// matchedTexts returns the texts of the matches of the rules that the limit matches.
func (s *state) matchedTexts() []string {
	if s.index == nil {
		return nil // no limit there had triggers
	}
	var out []string
	for rule := range s.index.Rules() {
		if s.bound.Matches(rule) {
			out = append(out, s.index.Texts(rule)...)
		}
	}
	return out
}

// onRoute reports whether the limit's policy is attached to the route or below it.
func (s *state) onRoute() bool { return s.on.Level(s.policy) >= gateway.LevelRoute }

// unchanged reports whether there is nothing to report of a limit that is not
// written itself.
func (l *routeLimit) unchanged() bool {
	if l.before.on == nil || l.after.on == nil {
		return l.after.on == nil
	}
	return l.before.matched == l.after.matched && l.before.holds == l.after.holds && len(l.after.added) == 0 &&
		sameMatches(l.before.bound, l.after.bound)
}

// total is a limit on all routes.
type total struct {
	key           key
	kind          *policykind.Kind
	reads         func(namespace string) bool
	before, after sum
	unbound       *occurrences // routes on which it was bound and matches nothing after the write
	newUnmatched  *occurrences // routes that are new to it, on which it matches nothing
	// removed are the texts of its matches that a rule had before the write and none has
	// after it, added the names of the rules that it matches only after it.
	removed, added map[string]*occurrences
}

func (t *total) add(l *routeLimit) {
	for _, s := range []*state{&l.before, &l.after} {
		if s.on != nil {
			t.kind = s.on.Kind
		}
	}
	t.before.add(t.kind, l.before)
	t.after.add(t.kind, l.after)
	if l.after.on == nil {
		return
	}
	switch {
	case l.before.holds > 0 && l.after.matched == 0:
		t.unbound = t.unbound.add(t.kind, l.after)
	case l.before.on == nil && l.after.matched == 0 && l.after.onRoute():
		t.newUnmatched = t.newUnmatched.add(t.kind, l.after)
	case l.before.on != nil && l.after.matched > 0:
		t.addRemoved(l)
		t.addAdded(l)
	}
}

// addAdded adds the rules that a limit did not match before.
func (t *total) addAdded(l *routeLimit) {
	var had []string
	if len(l.after.added) > 0 {
		had = l.before.matchedTexts()
	}
	for _, rule := range l.after.added {
		texts := l.after.index.Texts(rule)
		if !slices.ContainsFunc(texts, func(text string) bool { return !slices.Contains(had, text) }) {
			continue // what it was bound to is in two rules now
		}
		if t.added == nil {
			t.added = make(map[string]*occurrences)
		}
		path := l.after.on.Path
		path.Rule = rule
		name := path.Element(gateway.LevelRule).String()
		t.added[name] = t.added[name].add(t.kind, l.after)
	}
}

// addRemoved adds the matches of a limit that some rule had and none has after the
// write.
func (t *total) addRemoved(l *routeLimit) {
	if len(l.before.bound.Triggers) != len(l.after.bound.Triggers) {
		return // the triggers were edited
	}
	for i := range l.after.bound.Triggers {
		had, has := l.before.bound.Triggers[i].Found, l.after.bound.Triggers[i].Found
		for m := range min(len(had), len(has)) {
			if !had[m] || has[m] {
				continue
			}
			if t.removed == nil {
				t.removed = make(map[string]*occurrences)
			}
			text := hiddenMatch
			if t.reads(l.after.on.Path.Route.Namespace) {
				text = l.after.bound.Limit.Triggers[i].Matches[m].String()
			}
			t.removed[text] = t.removed[text].add(t.kind, l.after)
		}
	}
}

// sum is a limit on all routes, before or after the write.
type sum struct {
	all, unmatched *occurrences // routes that it is in force on, and those of which it matches no rule
	found          map[[2]int]bool
	hosts          map[string]bool
	last           state // of the last route
	// samples are routes with matches, in which the nearest matches are looked up, and
	// matches their number.
	samples []state
	matches int
}

func (s *sum) add(kind *policykind.Kind, l state) {
	if l.on == nil {
		return
	}
	s.all = s.all.add(kind, l)
	s.last = l
	s.sample(l)
	if l.matched == 0 {
		s.unmatched = s.unmatched.add(kind, l)
	}
	if s.found == nil {
		s.found, s.hosts = make(map[[2]int]bool), make(map[string]bool)
	}
	for t := range l.bound.Triggers {
		for m, found := range l.bound.Triggers[t].Found {
			if found {
				s.found[[2]int{t, m}] = true
			}
		}
	}
	maps.Copy(s.hosts, l.hosts)
}

// sample keeps a route that has matches, as long as they are few.
func (s *sum) sample(l state) {
	if l.index == nil || s.matches > maxSampledMatches || l.on.Path.Route.Kind != gateway.KindHTTPRoute ||
		slices.ContainsFunc(s.samples, func(o state) bool { return o.on.Path.Route == l.on.Path.Route }) {
		return
	}
	s.samples, s.matches = append(s.samples, l), s.matches+l.index.Matches()
}

// matchesNowhere reports whether the limit is in force on routes, and matches no rule
// of any.
func (s *sum) matchesNowhere() bool {
	return s.unmatched != nil && s.unmatched.times() == s.all.times()
}

// occurrences counts routes at their roots, or paths; the first stands for all.
type occurrences struct {
	kind  *policykind.Kind
	first state
	count int
	// others than the first route.
	others map[*gateway.Route]struct{}
}

func (o *occurrences) add(kind *policykind.Kind, s state) *occurrences {
	if o == nil {
		o = &occurrences{kind: kind, first: s}
	}
	o.count++
	if r := s.on.Path.Route; r != o.first.on.Path.Route && len(o.others) < maxRoutes {
		if o.others == nil {
			o.others = make(map[*gateway.Route]struct{})
		}
		o.others[r] = struct{}{}
	}
	return o
}

// times returns how often it was added to; 0 where it never was.
func (o *occurrences) times() int {
	if o == nil {
		return 0
	}
	return o.count
}

// routes counts routes, each once.
func (o *occurrences) routes() int {
	if len(o.others) == maxRoutes {
		return o.count
	}
	return 1 + len(o.others)
}

// routesText names the first of the routes.
func (o *occurrences) routesText() string {
	text := routeText(o.first.on)
	if more := o.routes() - 1; more > 0 {
		text += " and " + api.Plural(more, "more route")
	}
	return text
}

// rulesText names the first of the rules of routes.
func (o *occurrences) rulesText() string {
	text := fmt.Sprintf("%s of %s", o.first.on.Path.Route.RuleName(o.first.on.Path.Rule), routeText(o.first.on))
	if o.count > 1 {
		text += " and " + api.Plural(o.count-1, "more path")
	}
	return text
}

// routeText names the route of a path.
func routeText(e *effective.Effective) string { return e.Path.Route.Ref().String() }
