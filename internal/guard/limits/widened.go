package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// widenedKey is a limit, and a match that it applies to though its triggers do not
// select it.
type widenedKey struct {
	limit key
	match string
}

func compareWidened(a, b widenedKey) int {
	return cmp.Or(compareKeys(a.limit, b.limit), strings.Compare(a.match, b.match))
}

// addWidened adds the matches that the limit with triggers which is bound to the path's
// rule applies to without selecting them: of the policy that is written all of them, of
// another policy those that the write adds.
func (t *Tracker) addWidened(p effective.Pair, b Pair) {
	holder := b.After.bound.Holder()
	if holder < 0 || len(b.After.limit(holder).Triggers) == 0 {
		return
	}
	k := b.After.key(holder)
	matches := b.addedMatches
	switch {
	case t.writes(k):
		matches = b.unselectedMatches
	case !b.matchedBefore(holder):
		l := &t.route[k].after
		l.added = append(l.added, b.After.rule())
		return
	case !b.Before.Triggered():
		return // it was bound to every rule
	}
	for _, match := range matches(holder) {
		t.addWidenedMatch(k, match, p.After)
	}
}

// unselectedMatches returns the matches of the path's rule that the limit at a place
// does not select.
func (p Pair) unselectedMatches(place int) []string {
	return p.After.limit(place).AlsoMatches(p.After.rule())
}

// placeBefore returns the place before the write of the limit at a place after it, or
// -1.
func (p Pair) placeBefore(place int) int {
	r := p.After.bound.Rules[place]
	return p.Before.find(r.Key, r.From.Policy)
}

// matchedBefore reports whether the limit at a place matched the path's rule before the
// write.
func (p Pair) matchedBefore(place int) bool {
	was := p.placeBefore(place)
	return was >= 0 && p.Before.limit(was).Matches(p.Before.rule())
}

// addedMatches returns the matches that the write brings to the limit at a place by
// way of the path's rule, which it matched before.
func (p Pair) addedMatches(place int) []string {
	had, has := p.Before.bound.Route.Texts(p.Before.rule()), p.After.bound.Route.Texts(p.After.rule())
	if !containsAll(has, had) {
		has = p.unselectedMatches(place) // the rule's matches were edited: the limit selects the others
	}
	if !containsAll(had, has) { // a match may have been another rule's
		had = (&state{bound: p.Before.limit(p.placeBefore(place)), index: p.Before.bound.Route}).matchedTexts()
	}
	return slices.DeleteFunc(slices.Clone(has), func(text string) bool { return slices.Contains(had, text) })
}

// containsAll reports whether a list has all of some texts.
func containsAll(list, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !slices.Contains(list, text) })
}

func (t *Tracker) addWidenedMatch(k key, match string, e *effective.Effective) {
	if !t.Write.Reads(e.Path.Route.Namespace) {
		match = hiddenMatch
	}
	at := widenedKey{k, match}
	if t.widened == nil {
		t.widened = make(map[widenedKey]*occurrences)
	}
	if len(t.widened) >= maxWidened && t.widened[at] == nil {
		return
	}
	t.widened[at] = t.widened[at].add(e.Kind, state{on: e})
}

// reportWidened reports the matches that limits apply to without selecting them.
func (t *Tracker) reportWidened() {
	all := slices.SortedFunc(maps.Keys(t.widened), compareWidened)
	for i, k := range all {
		on := t.widened[k]
		g := group{kind: on.kind, code: api.ReasonLimitWidened, action: api.Warn}
		if i == maxFindings {
			t.add(g, Finding{What: fmt.Sprintf("more matches that limits also apply to: %d", len(all)-i)})
			return
		}
		if t.writes(k.limit) {
			t.add(g, ownWidened(k, on))
		} else {
			t.add(g, otherWidened(k, on))
		}
	}
}

func ownWidened(k widenedKey, on *occurrences) Finding {
	short := fmt.Sprintf("%s also applies to %s, which its triggers do not select", k.limit.rule, k.match)
	return Finding{
		Rule: k.limit.rule.String(), Short: short,
		What:   fmt.Sprintf("%s: %s has that match as well", short, on.rulesText()),
		Advice: "split the rule to limit a part of it",
	}
}

func otherWidened(k widenedKey, on *occurrences) Finding {
	policy := k.limit.ref()
	short := fmt.Sprintf("%s of %s also applies to %s", k.limit.rule, policy, k.match)
	f := Finding{
		Rule: k.limit.rule.String(), Policy: &policy, Short: short,
		What:   fmt.Sprintf("%s: %s has that match as well", short, on.rulesText()),
		Advice: "split the rule to limit a part of it",
	}
	if k.limit.block == merge.Overrides {
		f.Advice = fmt.Sprintf("ask the owner of %s before you split the rule", policy.Key())
	}
	return f
}
