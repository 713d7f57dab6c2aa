package merge

import "slices"

// overlay appends to out two sorted lists of rules, merged. A weak rule is lost where a
// strong one is in its place; all others are kept. Two rules are in the same place if
// their keys are equal or one is below the other, except that rules may be below an
// empty map. Runs of rules without a conflict are copied at once, so that merging a
// short list into a long one is fast.
func (f *fold) overlay(out, strong, weak []Effective) []Effective {
	out = slices.Grow(out, len(strong)+len(weak))
	covering := -1 // index in out of the last strong rule that may have weak rules below it, -1 if none
	for len(weak) > 0 {
		n := countUpTo(strong, weak[0].Key, 1)
		if at := lastNonEmptyMap(strong[:n]); at >= 0 {
			covering = len(out) + at
		}
		out = append(out, strong[:n]...)
		strong = strong[n:]
		if n > 0 && out[len(out)-1].Key.path == weak[0].Key.path {
			f.recordLoss(weak[0], out[len(out)-1].From)
			weak = weak[1:]
			continue
		}
		n = len(weak)
		if len(strong) > 0 {
			n = 1 + countUpTo(weak[1:], strong[0].Key, 0)
		}
		run := weak[:n]
		weak = weak[n:]
		for covering >= 0 && len(run) > 0 && out[covering].Key.Holds(run[0].Key) {
			f.recordLoss(run[0], out[covering].From)
			run = run[1:]
		}
		out = f.appendBefore(out, run, strong)
	}
	return append(out, strong...)
}

// lastNonEmptyMap returns the index of the last rule that is not an empty map, -1 if
// there is none.
func lastNonEmptyMap(list []Effective) int {
	i := len(list) - 1
	for i >= 0 && list[i].EmptyMap {
		i--
	}
	return i
}

// appendBefore appends the weak rules that sort before the strong ones, except for those
// that have the first strong one below, which are lost.
func (f *fold) appendBefore(out, run, strong []Effective) []Effective {
	if len(strong) == 0 {
		return append(out, run...)
	}
	next := &strong[0]
	if n := len(run) - 1; n > smallCount && f.isFlat() { // of flat rules only the last can have it below
		out = append(out, run[:n]...)
		run = run[n:]
	}
	for _, w := range run {
		if !w.EmptyMap && w.Key.Holds(next.Key) {
			f.recordLoss(w, next.From)
			continue
		}
		out = append(out, w)
	}
	return out
}

// countUpTo returns the number of rules of a sorted list before k, for bound 0, or up to
// k, for bound 1. It searches exponentially, because the number is mostly small.
func countUpTo(list []Effective, k Key, bound int) int {
	from, to := 0, 0
	for to < len(list) && list[to].Key.Compare(k) < bound {
		from, to = to+1, 2*to+1
	}
	to = min(to, len(list))
	for from < to {
		if mid := (from + to) / 2; list[mid].Key.Compare(k) < bound {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// nesting is whether a block has a rule below another one that is not an empty map,
// which it should not have.
type nesting uint8

const (
	nestingUnknown nesting = iota
	flat
	nested
)

func (f *fold) isFlat() bool {
	if f.nesting == nestingUnknown {
		f.nesting = flat
		if slices.ContainsFunc(f.layers, func(l Layer) bool { return slices.ContainsFunc(l.Blocks, hasNestedRules) }) {
			f.nesting = nested
		}
	}
	return f.nesting == flat
}

func hasNestedRules(b Rules) bool {
	var above *Rule
	for i := range b.Rules {
		r := &b.Rules[i]
		if above != nil && above.Key.Holds(r.Key) {
			return true
		}
		if !r.EmptyMap {
			above = r
		}
	}
	return false
}

// find returns the index of a key in sorted rules, or where it would be.
func find(rules []Effective, k Key) (int, bool) {
	return slices.BinarySearchFunc(rules, k, func(e Effective, k Key) int { return e.Key.Compare(k) })
}

// effective appends the rules of a block as effective rules.
func effective(out []Effective, from Origin, rules []Rule) []Effective {
	out = slices.Grow(out, len(rules))
	for i := range rules {
		out = append(out, Effective{Rule: &rules[i], From: from})
	}
	return out
}
