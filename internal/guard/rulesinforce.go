package guard

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// lostRule is a group of rules of one policy, or one of them, that is in force on a path
// before a write and not after it.
type lostRule struct {
	from  *merge.Policy
	block merge.Block
	// name for readers, such as jwt, authentication or limits.a; key is the first rule.
	name string
	key  merge.Key
	// disables is set for a rule that removes those of its group.
	disables bool
	// gone is set if no other value is in force in its place.
	gone     bool
	protects bool
}

// lostRules returns the rules that are in force on a path before a write and not after it,
// by key. A value of another policy in the place of one is a loss whether or not it is
// equal: else the author of a policy could find out a value of another one by trial.
// A path that is new, ends, or is not reached after it loses none.
func lostRules(p effective.Pair) []lostRule {
	if p.Before == nil || p.After == nil || p.Unreached || p.Before.Result == p.After.Result {
		return nil
	}
	var out []lostRule
	var named merge.Key // the last key that out has a name for, with all below it
	for i := range p.Before.Rules {
		r := &p.Before.Rules[i]
		if r.Value == nil || r.From.Block == merge.Object {
			continue
		}
		l := lostRule{from: r.From.Policy, block: r.From.Block, key: r.Key, disables: r.Group.Disables}
		l.gone, l.protects = !inPlace(p.After, r.Key, l.follows), !l.disables && p.Before.Kind.Protects(r.Key)
		if n := len(out); n > 0 && out[n-1].gone == l.gone && out[n-1].from.Same(l.from) && named.Holds(r.Key) {
			continue
		}
		if !l.gone && inPlace(p.After, r.Key, l.isFrom) {
			continue
		}
		l.name, named = l.shortestName(p)
		out = append(out, l)
	}
	return out
}

// losesValues reports whether a rule has another value after the write, or none.
func losesValues(p effective.Pair) bool {
	return slices.ContainsFunc(p.Rules(), func(r api.RuleChange) bool {
		return r.Before != nil && (r.After == nil || !merge.Equal(r.Before.Value, r.After.Value))
	})
}

// follows reports whether a rule counts in the place of the lost one: one that removes those
// of its group only in the place of another such rule.
func (l *lostRule) follows(r *merge.Effective) bool { return l.disables || !r.Group.Disables }

// isFrom reports whether a rule that follows is of the same policy.
func (l *lostRule) isFrom(r *merge.Effective) bool {
	return l.follows(r) && r.From.Policy.Same(l.from)
}

// shortestName returns the shortest name of what is lost, and its key: all of a group or of
// a field that is lost in the same way has one name.
func (l *lostRule) shortestName(p effective.Pair) (string, merge.Key) {
	k := p.Before.Kind
	for n := k.GroupDepth(l.key); ; n++ {
		key, ok := l.key.Ancestor(n)
		if !ok {
			return l.key.String(), l.key
		}
		if !inPlace(p.After, key, l.follows) || !l.gone && !inPlace(p.After, key, l.isFrom) && !l.goneBelow(p, key) {
			return k.GroupName(l.key, n), key
		}
	}
}

// goneBelow reports whether nothing follows some rule of the policy below a key.
func (l *lostRule) goneBelow(p effective.Pair, k merge.Key) bool {
	at, _ := find(p.Before.Rules, k)
	for _, r := range p.Before.Rules[at:] {
		if !k.Holds(r.Key) {
			return false
		}
		if r.Value != nil && r.From.Policy.Same(l.from) && !inPlace(p.After, r.Key, l.follows) {
			return true
		}
	}
	return false
}

// find returns the place of a key among rules, and whether they have it.
func find(rules []merge.Effective, k merge.Key) (int, bool) {
	return slices.BinarySearchFunc(rules, k, func(r merge.Effective, k merge.Key) int { return r.Key.Compare(k) })
}

// inPlace reports whether a rule that counts is in force in the place of a key.
func inPlace(e *effective.Effective, k merge.Key, counts func(*merge.Effective) bool) bool {
	return ruleInPlace(e, k, counts) != nil
}

// ruleInPlace returns the first rule that counts and is in force at a key, or below it, or in
// a place that holds it; nil if there is none.
func ruleInPlace(e *effective.Effective, k merge.Key, counts func(*merge.Effective) bool) *merge.Effective {
	at, found := find(e.Rules, k)
	for i := at; i < len(e.Rules) && k.Holds(e.Rules[i].Key); i++ {
		if r := &e.Rules[i]; r.Value != nil && counts(r) {
			return r
		}
	}
	if found || at == 0 {
		return nil
	}
	above := &e.Rules[at-1]
	if above.Key.Holds(k) && !above.EmptyMap && above.Value != nil && counts(above) {
		return above
	}
	return nil
}

// LostGroups returns the names of the rules that are in force on a path before the write,
// and neither they nor others in their place after it: such as jwt or authentication where
// all of it is lost, limits.a where one of several is. Those that protect come first, and are
// returned in protection as well. A path that ends, or that no request
// reaches, loses none.
func LostGroups(p effective.Pair) (names, protection []string) {
	for _, l := range goneRules(lostRules(p)) {
		names = append(names, l.name)
		if l.protects {
			protection = append(protection, l.name)
		}
	}
	return names, protection
}

// goneRules returns the rules that nothing follows, each name once, those that protect first.
func goneRules(lost []lostRule) []lostRule {
	out := eachName(lost, true)
	sortByProtection(out)
	return out
}

// manyNames is from how many rules on an index finds the names that are known.
const manyNames = 32

// eachName returns the rules that are gone, or those that others follow, each name once.
func eachName(lost []lostRule, gone bool) []lostRule {
	var out []lostRule
	var index map[string]int // by name
	if len(lost) >= manyNames {
		index = make(map[string]int)
	}
	for _, l := range lost {
		if l.gone != gone {
			continue
		}
		at, known := index[l.name]
		if index == nil {
			at = slices.IndexFunc(out, func(o lostRule) bool { return o.name == l.name })
			known = at >= 0
		}
		switch {
		case known:
			out[at].protects = out[at].protects || l.protects
		case index != nil:
			index[l.name] = len(out)
			fallthrough
		default:
			out = append(out, l)
		}
	}
	return out
}

// sortByProtection sorts rules that protect before others.
func sortByProtection(rules []lostRule) {
	slices.SortStableFunc(rules, func(a, b lostRule) int { return cmp.Compare(btoi(b.protects), btoi(a.protects)) })
}
