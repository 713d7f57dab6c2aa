package merge

import "slices"

// overlay merges two sorted lists of rules. A weak rule is lost where a strong
// one holds its place; all others are kept. Two rules hold the same place if
// their keys are equal or one lies below the other, save that an empty map
// (hollow) leaves room for what lies below it.
func (f *fold) overlay(strong, weak []Effective) []Effective {
	out := make([]Effective, 0, len(strong)+len(weak))
	cover := -1 // in out, the last strong rule that nothing weak may lie below
	i := 0
	for j := range weak {
		w := weak[j]
		for i < len(strong) && strong[i].Key.Compare(w.Key) <= 0 {
			if !strong[i].Hollow {
				cover = len(out)
			}
			out = append(out, strong[i])
			i++
		}
		if at := holder(out, cover, strong[i:], w); at != nil {
			f.meet(at, w)
			continue
		}
		out = append(out, w)
	}
	return append(out, strong[i:]...)
}

// holder returns the strong rule that holds the place of w: one at or above
// it, which is in out by now, or the next one, below it.
func holder(out []Effective, cover int, next []Effective, w Effective) *Effective {
	if n := len(out); n > 0 && out[n-1].Key == w.Key {
		return &out[n-1]
	}
	if cover >= 0 && out[cover].Key.Holds(w.Key) {
		return &out[cover]
	}
	if len(next) > 0 && !w.Hollow && w.Key.Holds(next[0].Key) {
		return &next[0]
	}
	return nil
}

// meet books what the weak rule w becomes where the strong rule at stands.
func (f *fold) meet(at *Effective, w Effective) {
	if at.Key == w.Key && Equal(at.Value, w.Value) {
		at.share(w)
		return
	}
	f.lose(w, at.From)
}

// share lets the origins of an equal value survive with e.
func (e *Effective) share(o Effective) {
	e.same = append(slices.Clip(e.same), o.From)
	e.same = append(e.same, o.same...)
}

// lose books the loss of a rule for everyone who held it.
func (f *fold) lose(e Effective, to Origin) {
	f.loseOne(e.Rule, e.From, to)
	for _, o := range e.same {
		f.loseOne(e.Rule, o, to)
	}
}

func (f *fold) loseOne(r *Rule, from, to Origin) {
	if f.lost == nil {
		f.lost = make(map[lostKey]Lost)
	}
	f.lost[lostKey{from.Policy, r.Key.path}] = Lost{Rule: r, Block: from.Block, To: to}
}

// find returns the place of a key in sorted rules.
func find(rules []Effective, k Key) (int, bool) {
	return slices.BinarySearchFunc(rules, k, func(e Effective, k Key) int { return e.Key.Compare(k) })
}

// effective makes rules of a block effective ones.
func effective(from Origin, rules []Rule) []Effective {
	out := make([]Effective, len(rules))
	for i := range rules {
		out[i] = Effective{Rule: &rules[i], From: from}
	}
	return out
}
