package guard

import (
	"cmp"
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// limitChange is one thing that a write does to a limit.
type limitChange struct {
	what   *limitEffect
	limit  limitKey
	by     limitKey   // the limit that is bound in its place, if one
	text   string     // the match or the rule that it is about, if one
	action api.Action // Warn if empty
}

func compareLimitChanges(a, b limitChange) int {
	return cmp.Or(
		strings.Compare(a.what.more, b.what.more), compareLimitKeys(a.limit, b.limit), compareLimitKeys(a.by, b.by),
		strings.Compare(a.text, b.text), strings.Compare(string(a.action), string(b.action)),
	)
}

const (
	keepMatches   = "keep the matches that bind it, or edit the policy as well"
	keepHostnames = "keep the hostnames that bind it, or edit the policy as well"
)

// limitEffect is a kind of limitChange: its reason, what there is more of, and the finding
// about a change and where it is.
type limitEffect struct {
	code    api.ReasonCode
	more    string
	finding func(*limitTally, limitChange, *limitPlaces) Finding
}

var (
	// The write takes a limit from the rules that it was bound to.
	limitUnbound = &limitEffect{api.ReasonTriggerUnmatched, "more limits no longer bound to any rule: %d", (*limitTally).unbound}
	// A limit meets a route of which it matches no rule.
	limitUnmatched = &limitEffect{api.ReasonTriggerUnmatched, "more limits that bind to no rule of a route: %d", func(_ *limitTally, c limitChange, on *limitPlaces) Finding {
		return c.finding("binds to no rule of "+on.routesText(), "binds to no rule", "its triggers select none of the rules' matches")
	}}
	// No rule has a match of its triggers any more.
	limitMatchRemoved = &limitEffect{api.ReasonTriggerUnmatched, "more matches of triggers that no rule has after this write: %d", func(_ *limitTally, c limitChange, on *limitPlaces) Finding {
		short := "no longer finds its match " + c.text
		return c.finding(short+" in any rule of "+on.routesText(), short, keepMatches)
	}}
	// It matches a rule that it did not.
	limitRuleAdded = &limitEffect{api.ReasonLimitWidened, "more rules that limits are also bound to: %d", func(_ *limitTally, c limitChange, _ *limitPlaces) Finding {
		return c.finding("is now also bound to "+c.text, "is bound to one more rule", "")
	}}
	// Another limit is bound in its place.
	limitShadowed = &limitEffect{api.ReasonLimitShadowed, "%d more limits are shadowed", (*limitTally).shadowed}
	// It applies to a match that its triggers do not select.
	limitWidened = &limitEffect{api.ReasonLimitWidened, "more matches that limits also apply to: %d", (*limitTally).widened}
	// A limit of a lower policy is bound instead of an override.
	limitDisplaced = &limitEffect{api.ReasonOverrideWeakened, "more overrides that other limits are bound instead of: %d", (*limitTally).displaced}
)

// finding returns a finding about a limit of another policy, of which what and short are
// said.
func (c limitChange) finding(what, short, advice string) Finding {
	policy := c.limit.policy
	of := fmt.Sprintf("%s of %s ", c.limit.rule, policy)
	f := c.limit.finding(of+what, of+short, advice)
	f.Policy = policy
	return f
}

func (t *limitTally) unbound(c limitChange, on *limitPlaces) Finding {
	what := "is no longer bound to any rule of " + on.routesText()
	if on.first.bound.ExcludedByHostnames() {
		return c.finding(what+": no request for its hostnames reaches it", "is no longer bound to any rule", keepHostnames)
	}
	return c.finding(what, "is no longer bound to any rule", keepMatches)
}

func (t *limitTally) shadowed(c limitChange, on *limitPlaces) Finding {
	policy, by := c.limit.policy, c.by.policy
	limit, holder := c.limit.rule.String(), c.by.rule.String()
	if policy != by || !t.writes(c.limit) {
		limit, holder = limit+" of "+policy.String(), holder+" of "+by.String()
	}
	short := fmt.Sprintf("%s is shadowed by %s on %s", c.limit.rule, c.by.rule, on.rulesText())
	what := fmt.Sprintf("%s is shadowed by %s on %s: only one limit is bound to a rule, the first by name", limit, holder, on.rulesText())
	f := c.limit.finding(what, short, "rename one to change the order, or select other rules")
	f.Policy = policy
	if t.writes(c.limit) {
		f.Policy = by
	}
	return f
}

func (t *limitTally) widened(c limitChange, on *limitPlaces) Finding {
	short, advice := "also applies to "+c.text, "split the rule to limit a part of it"
	has := fmt.Sprintf(": %s has that match as well", on.rulesText())
	if t.writes(c.limit) {
		short = fmt.Sprintf("%s %s, which its triggers do not select", c.limit.rule, short)
		return c.limit.finding(short+has, short, advice)
	}
	if c.limit.block == merge.Overrides {
		advice = fmt.Sprintf("ask the owner of %s before you split the rule", c.limit.policy.Key())
	}
	return c.finding(short+has, short, advice)
}

func (t *limitTally) displaced(c limitChange, _ *limitPlaces) Finding {
	policy, by := c.limit.policy, c.by.policy
	short := fmt.Sprintf("%s of %s is bound instead of %s", c.by.rule, by, c.limit.rule)
	f := c.by.finding(fmt.Sprintf("%s, an override of %s that follows it by name", short, policy), short+", which follows it by name",
		fmt.Sprintf("rename %s so that it sorts after %s, or ask the owner of %s", c.by.rule, c.limit.rule, policy.Key()))
	f.Policy = policy
	return f
}

// note adds a place of a change.
func (t *limitTally) note(c limitChange, at limitState) {
	if c.what != limitWidened || len(t.changes.entries) < maxWidened || t.changes.entries[c] != nil {
		t.changes.at(c, limitPlaces{}).add(at)
	}
}

// limitGroup is findings of which only the first are reported one by one.
type limitGroup struct {
	kind   *policykind.Kind
	code   api.ReasonCode
	action api.Action
	more   string // what there are more of
}

// report reports a finding, unless many of its group were reported: then it is only
// counted, and not built. A write can bring thousands, and each looks up what is nearest
// to it.
func (t *limitTally) report(g limitGroup, build func() Finding) {
	put(&t.reported, g, t.reported[g]+1)
	if t.reported[g] <= maxLimits {
		t.ev.reportForKind(g.kind, g.code, g.action, build())
	}
}

// limitPlaces counts routes at their roots, or paths; the first stands for all.
type limitPlaces struct {
	first limitState
	count int
	each  set[*gateway.Route] // the routes, as far as each counts once
}

func (o *limitPlaces) add(s limitState) {
	if o.count == 0 {
		o.first = s
	}
	o.count++
	if o.each.count() <= maxLimitRoutes {
		o.each.add(s.on.Path.Route)
	}
}

// routes counts routes, each once.
func (o *limitPlaces) routes() int {
	if o.each.count() > maxLimitRoutes {
		return o.count
	}
	return o.each.count()
}

// routesText names the first of the routes.
func (o *limitPlaces) routesText() string {
	return routeText(o.first.on) + api.More(" and ", o.routes()-1, "route")
}

// rulesText names the first of the rules of routes.
func (o *limitPlaces) rulesText() string {
	path := &o.first.on.Path
	return path.Route.RuleName(path.Rule) + " of " + routeText(o.first.on) + api.More(" and ", o.count-1, "path")
}

// routeText names the route of a path.
func routeText(e *effective.Effective) string { return e.Path.Route.Ref().String() }

// limitKey identifies a limit: two blocks of one policy may each have one of its name.
type limitKey struct {
	policy api.Ref
	rule   merge.Key
	block  merge.Block
}

// keyOfLimit returns the key of the limit at a place.
func keyOfLimit(b *effective.Bound, place int) limitKey {
	r := b.Rules[place]
	return limitKey{b.On.Ref(r.From.Policy), r.Key, r.From.Block}
}

// finding returns a finding about the limit, of which what and short are said.
func (k limitKey) finding(what, short, advice string) Finding {
	return Finding{Rule: k.rule.String(), What: what, Short: short, Advice: advice}
}

func compareLimitKeys(a, b limitKey) int {
	return cmp.Or(api.CompareRefs(a.policy, b.policy), strings.Compare(a.rule.String(), b.rule.String()), cmp.Compare(a.block, b.block))
}

// writes reports whether a limit is one of the policy that is written.
func (t *limitTally) writes(k limitKey) bool {
	return t.ev.policy != nil && t.ev.policy.Ref() == k.policy
}

// limitTally adds up what a write does to limits that bind to the rules of routes by
// triggers of their own: path by path, route by route.
type limitTally struct {
	ev            *evaluation
	unit          int // of the current route at a root
	before, after limitSide
	changes       tally[limitChange, limitPlaces]
	reported      map[limitGroup]int
}

// limitSide is what limits are before the write, or after it.
type limitSide struct {
	route tally[limitKey, limitState] // on the current route
	own   tally[limitKey, limitSum]   // of the policy that is written
}

// limitState is a limit on one route at one root, before or after the write.
type limitState struct {
	on      *effective.Effective // the first path that it is in force on
	policy  *merge.Policy
	bound   *ratelimit.Bound
	matched bool  // it matches a rule
	holds   bool  // it is bound to a rule
	added   []int // rules that it did not match before the write
}
