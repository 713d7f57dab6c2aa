package limits

import (
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// reportOther reports what a write does to a limit of another policy than the one that
// is written.
func (t *Tracker) reportOther(l *total) {
	if l.unbound != nil {
		t.reportUnbound(l)
	}
	if l.newUnmatched != nil {
		t.warnOther(l, api.ReasonTriggerUnmatched, "more limits that bind to no rule of a route", otherText{
			what:  fmt.Sprintf("binds to no rule of %s", l.newUnmatched.routesText()),
			short: "binds to no rule", advice: "its triggers select none of the rules' matches",
		})
	}
	for _, text := range slices.Sorted(maps.Keys(l.removed)) {
		t.warnOther(l, api.ReasonTriggerUnmatched, "more matches of triggers that no rule has after this write", otherText{
			what:  fmt.Sprintf("no longer finds its match %s in any rule of %s", text, l.removed[text].routesText()),
			short: "no longer finds its match " + text, advice: keepMatches,
		})
	}
	for _, rule := range slices.Sorted(maps.Keys(l.added)) {
		t.warnOther(l, api.ReasonLimitWidened, "more rules that limits are also bound to", otherText{
			what: fmt.Sprintf("is now also bound to %s", rule), short: "is bound to one more rule",
		})
	}
}

const (
	keepMatches   = "keep the matches that bind it, or edit the policy as well"
	keepHostnames = "keep the hostnames that bind it, or edit the policy as well"
)

// reportUnbound reports a limit that the write takes from the rules that it was bound
// to.
func (t *Tracker) reportUnbound(l *total) {
	text := otherText{
		what:  fmt.Sprintf("is no longer bound to any rule of %s", l.unbound.routesText()),
		short: "is no longer bound to any rule", advice: keepMatches,
	}
	if l.unbound.first.bound.ExcludedByHostnames() {
		text.what += ": no request for its hostnames reaches it"
		text.advice = keepHostnames
	}
	t.warnOther(l, api.ReasonTriggerUnmatched, "more limits no longer bound to any rule", text)
}

// otherText is what is said of a limit, without its name.
type otherText struct{ what, short, advice string }

func (t *Tracker) warnOther(l *total, code api.ReasonCode, more string, text otherText) {
	t.report(group{l.kind, code, api.Warn, more}, func() Finding {
		policy := l.key.ref()
		return Finding{
			Rule: l.key.rule.String(), Policy: &policy,
			What:   fmt.Sprintf("%s of %s %s", l.key.rule, policy, text.what),
			Short:  fmt.Sprintf("%s of %s %s", l.key.rule, policy, text.short),
			Advice: text.advice,
		}
	})
}
