package merge

// groupEnd returns the end of the group of layers from start on that are applied
// together (SEMANTICS section 5, sameTarget).
func groupEnd(layers []Layer, start int) int {
	first, end := &layers[start], start+1
	if first.SameTarget == SameTargetHierarchical {
		return end
	}
	for end < len(layers) && layers[end].Beside(first) && layers[end].SameTarget == first.SameTarget {
		end++
	}
	return end
}

// applyGroup applies the layers from start to end, lowest first, to E. Their unset lists
// are added afterwards: they do not apply inside the group.
func (f *fold) applyGroup(start, end int) error {
	var err error
	switch f.layers[start].SameTarget {
	case SameTargetOldestWins:
		err = f.oldestWins(start, end)
	case SameTargetCollect:
		err = f.collect(start, end)
	default:
		err = f.apply(start, allBlocks, f.applyRules)
	}
	for i := start; i < end; i++ {
		f.addUnset(i)
	}
	return err
}

func (f *fold) oldestWins(start, end int) error {
	if err := f.highestFirst(start, end, f.applyRules); err != nil {
		return err
	}
	return f.lowestFirst(start, end, f.applyRules)
}

// highestFirst calls apply for the defaults and bare blocks of a group, the highest
// policy first.
func (f *fold) highestFirst(start, end int, apply blockFunc) error {
	for i := end - 1; i >= start; i-- {
		if err := f.apply(i, exceptOverrides, apply); err != nil {
			return err
		}
	}
	return nil
}

// lowestFirst calls apply for the overrides of a group, the lowest policy first.
func (f *fold) lowestFirst(start, end int, apply blockFunc) error {
	for i := start; i < end; i++ {
		if err := f.apply(i, onlyOverrides, apply); err != nil {
			return err
		}
	}
	return nil
}

// collect applies the policies of a group independently: first all defaults and bare
// blocks, then all overrides. E does not change while either are gathered, so that no
// block and no condition depends on another policy of the group. If two rules are in
// the same place, the oldest wins.
func (f *fold) collect(start, end int) error {
	before := f.rules
	if err := f.collectDefaults(start, end); err != nil {
		return err
	}
	return f.collectOverrides(start, end, before)
}

func (f *fold) collectDefaults(start, end int) error {
	var gathered, spare []Effective
	err := f.highestFirst(start, end, func(from Origin, s Strategy, rules []Rule) {
		f.block = f.withoutUnset(f.block[:0], from, rules)
		if s == Atomic && len(f.rules) > 0 {
			f.rejectAtomic(f.block)
			return
		}
		gathered, spare = f.overlay(spare[:0], gathered, f.block), gathered
	})
	f.setRules(f.overlay(nil, f.rules, gathered)) // collectOverrides still uses the list before
	return err
}

// collectOverrides sets the overrides of a group in E. If one of them is atomic, the
// rules from before the group are lost.
func (f *fold) collectOverrides(start, end int, before []Effective) error {
	var gathered, spare []Effective
	var atomicFrom Origin // the lowest atomic block
	err := f.lowestFirst(start, end, func(from Origin, s Strategy, rules []Rule) {
		f.block = effective(f.block[:0], from, rules)
		gathered, spare = f.set(spare[:0], gathered, f.block), gathered
		if s == Atomic && atomicFrom.Policy == nil {
			atomicFrom = from
		}
	})
	if atomicFrom.Policy != nil {
		old, group := split(f.rules, before)
		f.rules = group
		n := len(f.losses)
		gathered, old = split(f.overlay(nil, gathered, old), gathered)
		f.recordBlockLoss(old, atomicFrom)
		f.markWhole(n)
	}
	f.setRules(f.set(nil, f.rules, gathered))
	return err
}

// split splits a list into the rules with a key of some, and the others.
func split(list, some []Effective) (in, out []Effective) {
	for _, e := range list {
		if _, ok := find(some, e.Key); ok {
			in = append(in, e)
		} else {
			out = append(out, e)
		}
	}
	return in, out
}
