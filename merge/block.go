package merge

import "slices"

// put applies a block to E.
func (f *fold) put(from Origin, s Strategy, rules []Rule) {
	if from.Block == Overrides {
		f.override(from, s, rules)
	} else {
		f.defaults(from, s, rules)
	}
}

func (f *fold) defaults(from Origin, s Strategy, rules []Rule) {
	left := f.withoutUnset(from, rules)
	switch {
	case len(left) == 0:
	case len(f.rules) == 0:
		f.rules = left
	case s == Atomic:
		f.refuse(left)
	default:
		f.rules = f.overlay(f.rules, left)
	}
}

func (f *fold) override(from Origin, s Strategy, rules []Rule) {
	set := effective(from, rules)
	if s != Atomic {
		f.rules = f.set(f.rules, set)
		return
	}
	old := f.rules
	f.rules = set
	for _, e := range old {
		if i, ok := find(set, e.Key); ok && Equal(set[i].Value, e.Value) {
			set[i].share(e)
			continue
		}
		f.lose(e, from)
	}
}

// withoutUnset takes out of a defaults block what lower policies unset.
func (f *fold) withoutUnset(from Origin, rules []Rule) []Effective {
	out := make([]Effective, 0, len(rules))
	for i := range rules {
		e := Effective{Rule: &rules[i], From: from}
		if by := f.unsetBy(from.Policy, rules[i].Key); by != nil {
			f.lose(e, Origin{Policy: by, Block: Unset})
			continue
		}
		out = append(out, e)
	}
	return out
}

// unsetBy returns the lowest policy that unsets a key of p, or nil.
func (f *fold) unsetBy(p *Policy, k Key) *Policy {
	for _, u := range f.unset {
		if u.policy != p && u.Match(k) {
			return u.policy
		}
	}
	return nil
}

// set puts the rules of overrides into a list, the empty maps among them last:
// they replace nothing, but find their places as the others leave them.
func (f *fold) set(list, rules []Effective) []Effective {
	isHollow := func(e Effective) bool { return e.Hollow }
	if !slices.ContainsFunc(rules, isHollow) {
		return f.overlay(rules, list)
	}
	hollow := slices.DeleteFunc(slices.Clone(rules), func(e Effective) bool { return !e.Hollow })
	list = f.overlay(slices.DeleteFunc(rules, isHollow), list)
	return f.overlay(f.placed(list, hollow), list)
}

// placed takes out the empty maps whose place in a list holds a rule. Both are
// sorted, so that the last rule before a key is the only one that can hold it.
func (f *fold) placed(list, hollow []Effective) []Effective {
	var above *Effective
	i := 0
	return slices.DeleteFunc(hollow, func(e Effective) bool {
		for ; i < len(list) && list[i].Key.Compare(e.Key) <= 0; i++ {
			if !list[i].Hollow {
				above = &list[i]
			}
		}
		if above == nil || !above.Key.Holds(e.Key) {
			return false
		}
		f.lose(e, above.From)
		return true
	})
}

// refuse books the loss of an atomic defaults block, save for the rules that
// met an equal value.
func (f *fold) refuse(block []Effective) {
	if len(block) == 0 {
		return
	}
	to := f.lowest(block[0].From)
	for _, b := range block {
		if i, ok := find(f.rules, b.Key); ok && Equal(f.rules[i].Value, b.Value) {
			f.rules[i].share(b)
			continue
		}
		f.lose(b, to)
	}
}

// lowest returns the origin of the lowest policy with a rule in E, other than
// the refused one's own: its rules stand there only beside those of others, or
// where it alone filled E.
func (f *fold) lowest(refused Origin) Origin {
	own := Origin{}
	for i := range f.layers {
		p := f.layers[i].Policy
		at := slices.IndexFunc(f.rules, func(e Effective) bool { return e.From.Policy == p })
		switch {
		case at < 0:
		case p != refused.Policy:
			return f.rules[at].From
		default:
			own = f.rules[at].From
		}
	}
	return own
}
