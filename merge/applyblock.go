package merge

import "slices"

// applyRules applies the rules of a block to E.
func (f *fold) applyRules(from Origin, s Strategy, rules []Rule) {
	if from.Block == Overrides {
		f.override(from, s, rules)
	} else {
		f.defaults(from, s, rules)
	}
}

// defaults applies a block of defaults or bare rules.
func (f *fold) defaults(from Origin, s Strategy, rules []Rule) {
	f.block = f.withoutUnset(f.block[:0], from, rules)
	switch {
	case len(f.block) == 0:
	case len(f.rules) == 0:
		f.block = f.setRules(f.block)
	case s == Atomic:
		f.rejectAtomic(f.block)
	default:
		f.spare = f.setRules(f.overlay(f.spare[:0], f.rules, f.block))
	}
}

// override applies a block of overrides.
func (f *fold) override(from Origin, s Strategy, rules []Rule) {
	f.block = effective(f.block[:0], from, rules)
	if s != Atomic {
		f.spare = f.setRules(f.set(f.spare[:0], f.rules, f.block))
		return
	}
	f.recordBlockLoss(f.rules, from)
	f.block = f.setRules(f.block)
}

// set appends to out the list with the rules of overrides merged into it. Empty maps
// are merged last: they replace nothing, and are lost where another rule is in place.
func (f *fold) set(out, list, rules []Effective) []Effective {
	isEmptyMap := func(e Effective) bool { return e.EmptyMap }
	if !slices.ContainsFunc(rules, isEmptyMap) {
		return f.overlay(out, rules, list)
	}
	emptyMaps := slices.DeleteFunc(slices.Clone(rules), func(e Effective) bool { return !e.EmptyMap })
	list = f.overlay(nil, slices.DeleteFunc(rules, isEmptyMap), list)
	return f.overlay(out, f.placeEmptyMaps(list, emptyMaps), list)
}

// placeEmptyMaps removes the empty maps whose place in the list a rule holds. Both lists
// are sorted, so that only the last rule before a key can hold it.
func (f *fold) placeEmptyMaps(list, emptyMaps []Effective) []Effective {
	var above *Effective
	i := 0
	return slices.DeleteFunc(emptyMaps, func(e Effective) bool {
		for ; i < len(list) && list[i].Key.Compare(e.Key) <= 0; i++ {
			if !list[i].EmptyMap {
				above = &list[i]
			}
		}
		if above == nil || !above.Key.Holds(e.Key) {
			return false
		}
		f.recordLoss(e, above.From)
		return true
	})
}

// rejectAtomic records the loss of an atomic defaults block.
func (f *fold) rejectAtomic(block []Effective) {
	if len(block) > 0 {
		f.recordBlockLoss(block, f.lowest(block[0].From))
	}
}

// lowest returns the origin of the lowest policy with a rule in E, other than the
// rejected one. It returns the rejected policy only if E has no rules of others.
func (f *fold) lowest(rejected Origin) Origin {
	if f.low[0].Policy == nil {
		f.findLowest()
	}
	if f.low[0].Policy == rejected.Policy && f.low[1].Policy != nil {
		return f.low[1]
	}
	return f.low[0]
}

// findLowest sets low to the first rules of the two lowest policies with rules in E.
func (f *fold) findLowest() {
	low := &f.low
	var at [2]int // their layers
	for i := range f.rules {
		from := f.rules[i].From
		if from.Policy == low[0].Policy || from.Policy == low[1].Policy {
			continue
		}
		layer := f.lowestOf(from.Policy)
		switch {
		case low[0].Policy == nil || layer < at[0]:
			*low, at = [2]Origin{from, low[0]}, [2]int{layer, at[0]}
		case low[1].Policy == nil || layer < at[1]:
			low[1], at[1] = from, layer
		}
	}
}
