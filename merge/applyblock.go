package merge

import "slices"

// applyBlock calls apply for the rules of a block, read as given, if its condition is
// met.
func (f *fold) applyBlock(p *Policy, b *Rules, as Reading, apply blockFunc) error {
	from := Origin{Policy: p, Block: as.Block, Conditional: b.When != nil}
	met, err := f.met(from, b.When)
	if err != nil {
		return err
	}
	o := &f.outcomes[f.outcomeOf(p)]
	if !met {
		o.Skipped = true
		return nil
	}
	o.recordBlock(b.Block, as.Block)
	if as.By != nil {
		f.replaced(from, as.By, b.Rules)
		return nil
	}
	apply(from, as.Strategy, b.Rules)
	return nil
}

// replaced records the loss of a block to a policy that replaces those above it, whatever
// its rules are.
func (f *fold) replaced(from Origin, by *Policy, rules []Rule) {
	f.block = effective(f.block[:0], from, rules)
	f.recordBlockLoss(f.block, Origin{Policy: by, Block: Bare})
}

// met evaluates the condition of a block. If it fails, an overrides block applies and a
// defaults block does not, so that a constraint is not bypassed.
func (f *fold) met(from Origin, when Condition) (bool, error) {
	if when == nil {
		return true, nil
	}
	if f.spec == nil {
		f.spec = specOf(f.rules, false)
	}
	a := when.Evaluate(f.spec)
	if f.meter != nil {
		if err := f.meter.Spend(from.Policy, a.Cost); err != nil {
			return false, err
		}
	}
	if a.Err != nil || a.Missing != "" && a.HasSiblings {
		f.notes = append(f.notes, Note{Policy: from.Policy, Block: from.Block, When: when, Answer: a})
	}
	if a.Err != nil {
		return from.Block == Overrides, nil
	}
	return a.Met && a.Missing == "", nil
}

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
	f.block = f.withoutExcluded(f.withoutUnset(f.block[:0], from, rules))
	f.removeGroups(f.block, disables)
	f.removeGroups(f.block, excludesLower)
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
		f.removeGroups(f.block, inGroup)
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
		if from.Block == Object {
			layer = len(f.layers) // a policy comes first
		}
		switch {
		case low[0].Policy == nil || layer < at[0]:
			*low, at = [2]Origin{from, low[0]}, [2]int{layer, at[0]}
		case low[1].Policy == nil || layer < at[1]:
			low[1], at[1] = from, layer
		}
	}
}
