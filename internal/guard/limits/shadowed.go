package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// shadowKey is a limit, and the one that is bound in its place.
type shadowKey struct{ limit, by key }

func compareShadows(a, b shadowKey) int {
	return cmp.Or(compareKeys(a.limit, b.limit), compareKeys(a.by, b.by))
}

// addShadowed adds the limits that match the path's rule and are not bound to it: those
// where one of the two is of the policy that is written, and those that were not
// shadowed before.
func (t *Tracker) addShadowed(b Pair) {
	all := b.After.bound.Matching()
	if len(all) < 2 {
		return
	}
	by := b.After.key(all[0])
	for _, i := range all[1:] {
		k := b.After.key(i)
		if !t.writes(k) && !t.writes(by) && b.wasShadowed(i, all[0]) {
			continue
		}
		at := shadowKey{k, by}
		if t.shadowed == nil {
			t.shadowed = make(map[shadowKey]*occurrences)
		}
		t.shadowed[at] = t.shadowed[at].add(b.After.effective.Kind, state{on: b.After.effective})
	}
}

// wasShadowed reports whether of two limits of the path, by their places after the
// write, one shadowed the other before it.
func (p Pair) wasShadowed(limit, by int) bool {
	l, h := p.placeBefore(limit), p.placeBefore(by)
	return l >= 0 && h >= 0 && p.Before.bound.Holder() == h && p.Before.limit(l).Matches(p.Before.rule())
}

// reportShadowed reports which limits are bound in the place of others.
func (t *Tracker) reportShadowed() {
	all := slices.SortedFunc(maps.Keys(t.shadowed), compareShadows)
	for i, k := range all {
		on := t.shadowed[k]
		g := group{kind: on.kind, code: api.ReasonLimitShadowed, action: api.Warn}
		if i == maxFindings {
			t.add(g, Finding{What: fmt.Sprintf("%d more limits are shadowed", len(all)-i)})
			return
		}
		t.add(g, t.shadowFinding(k, on))
	}
}

func (t *Tracker) shadowFinding(k shadowKey, on *occurrences) Finding {
	policy, by := k.limit.ref(), k.by.ref()
	limit, holder := k.limit.rule.String(), k.by.rule.String()
	if policy != by || !t.writes(k.limit) {
		limit, holder = limit+" of "+policy.String(), holder+" of "+by.String()
	}
	other := policy
	if t.writes(k.limit) {
		other = by
	}
	return Finding{
		Rule: k.limit.rule.String(), Policy: &other,
		Short:  fmt.Sprintf("%s is shadowed by %s on %s", k.limit.rule, k.by.rule, on.rulesText()),
		What:   fmt.Sprintf("%s is shadowed by %s on %s: only one limit is bound to a rule, the first by name", limit, holder, on.rulesText()),
		Advice: "rename one to change the order, or select other rules",
	}
}
