package merge

import "slices"

// overlay appends two sorted lists of rules, merged. A weak rule is lost where
// a strong one holds its place; all others are kept. Two rules hold the same
// place if their keys are equal or one lies below the other, save that an empty
// map (hollow) leaves room for what lies below it. What has no other near it is
// moved as it stands, so that a short list meets a long one quickly.
func (f *fold) overlay(out, strong, weak []Effective) []Effective {
	out = slices.Grow(out, len(strong)+len(weak))
	cover := -1 // in out, the last strong rule that nothing weak may lie below
	for len(weak) > 0 {
		n := until(strong, weak[0].Key, 1)
		if at := lastSolid(strong[:n]); at >= 0 {
			cover = len(out) + at
		}
		out = append(out, strong[:n]...)
		strong = strong[n:]
		if n > 0 && out[len(out)-1].Key.path == weak[0].Key.path {
			f.lose(weak[0], out[len(out)-1].From)
			weak = weak[1:]
			continue
		}
		n = len(weak)
		if len(strong) > 0 {
			n = 1 + until(weak[1:], strong[0].Key, 0)
		}
		run := weak[:n]
		weak = weak[n:]
		for cover >= 0 && len(run) > 0 && out[cover].Key.Holds(run[0].Key) {
			f.lose(run[0], out[cover].From)
			run = run[1:]
		}
		out = f.above(out, run, strong)
	}
	return append(out, strong...)
}

// lastSolid returns the place of the last rule that is not hollow, -1 for none.
func lastSolid(list []Effective) int {
	i := len(list) - 1
	for i >= 0 && list[i].Hollow {
		i--
	}
	return i
}

// above appends weak rules that lie before the strong ones, and loses those
// that have the first of them below.
func (f *fold) above(out, run, strong []Effective) []Effective {
	if len(strong) == 0 {
		return append(out, run...)
	}
	next := &strong[0]
	if n := len(run) - 1; n > few && f.isTidy() { // what lies between would lie below it, too
		out = append(out, run[:n]...)
		run = run[n:]
	}
	for _, w := range run {
		if !w.Hollow && w.Key.Holds(next.Key) {
			f.lose(w, next.From)
			continue
		}
		out = append(out, w)
	}
	return out
}

// until counts the rules at the front of a sorted list whose key compares to k
// as less than a bound: 0 for those before k, 1 for those up to k. It looks in
// ever longer steps, because most are few.
func until(list []Effective, k Key, bound int) int {
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

// tidiness is whether no rule of a block lies below another one that is not
// hollow, as it should be.
type tidiness uint8

const (
	unknown tidiness = iota
	tidy
	untidy
)

func (f *fold) isTidy() bool {
	if f.tidy == unknown {
		f.tidy = tidy
		if slices.ContainsFunc(f.layers, func(l Layer) bool { return slices.ContainsFunc(l.Blocks, isUntidy) }) {
			f.tidy = untidy
		}
	}
	return f.tidy == tidy
}

func isUntidy(b Rules) bool {
	var above *Rule
	for i := range b.Rules {
		r := &b.Rules[i]
		if above != nil && above.Key.Holds(r.Key) {
			return true
		}
		if !r.Hollow {
			above = r
		}
	}
	return false
}

// find returns the place of a key in sorted rules.
func find(rules []Effective, k Key) (int, bool) {
	return slices.BinarySearchFunc(rules, k, func(e Effective, k Key) int { return e.Key.Compare(k) })
}

// effective appends rules of a block as effective ones.
func effective(out []Effective, from Origin, rules []Rule) []Effective {
	out = slices.Grow(out, len(rules))
	for i := range rules {
		out = append(out, Effective{Rule: &rules[i], From: from})
	}
	return out
}
