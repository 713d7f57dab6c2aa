package merge

import "slices"

// Meter limits what conditions may cost.
type Meter interface {
	// Spend books the cost of one evaluation of a condition of by; nil and 0
	// only ask, now and then, whether the fold may go on. An error ends it.
	Spend(by *Policy, cost uint64) error
}

// Fold computes the effective policy of the layers, which may come in any
// order (SEMANTICS section 3). A nil meter does not limit. The only error is
// the meter's.
func Fold(layers []Layer, meter Meter) (*Result, error) {
	ordered := slices.Clone(layers) // the caller keeps its order
	slices.SortStableFunc(ordered, func(a, b Layer) int { return Compare(b, a) })
	f := fold{meter: meter, layers: ordered, part: make([]participation, len(ordered))}
	for next := 0; next < len(ordered); {
		start := next
		next = groupEnd(ordered, start)
		if err := f.goOn(start, next); err != nil {
			return nil, err
		}
		if err := f.applyGroup(start, next); err != nil {
			return nil, err
		}
	}
	return &Result{Rules: f.rules, Outcomes: f.outcomes(), Notes: f.notes}, nil
}

// fold is the state of one Fold: E of SEMANTICS section 3 and its history.
type fold struct {
	meter  Meter
	layers []Layer // lowest first
	part   []participation
	rules  []Effective // E, sorted by key; none but hollow ones has another below it
	unset  []unsetBy
	notes  []Note
	lost   map[lostKey]Lost // the last loss of each rule
	seen   int              // rules of the layers so far
}

// unasked is how many rules are folded without asking the meter: so few cost
// less than anyone could notice.
const unasked = 256

// goOn asks the meter whether it may, once many rules were met: what a layer
// costs grows with them, and most have no condition that would ask.
func (f *fold) goOn(start, end int) error {
	for i := start; i < end; i++ {
		for _, b := range f.layers[i].Blocks {
			f.seen += len(b.Rules)
		}
	}
	if f.meter == nil || f.seen <= unasked {
		return nil
	}
	return f.meter.Spend(nil, 0)
}

type unsetBy struct {
	Names
	policy *Policy
}

type lostKey struct {
	policy *Policy
	path   string
}

// side chooses blocks by what they act as.
type side uint8

const (
	both   side = iota
	weak        // all but overrides
	strong      // overrides
)

// has reports whether a block that acts as b is on this side.
func (s side) has(b Block) bool { return s == both || (s == strong) == (b == Overrides) }

// taker does with a block that takes part what is to be done with it.
type taker func(from Origin, s Strategy, rules []Rule)

// apply gives the blocks of a layer that are on a side and take part to take,
// in their order. That order is the one in which they are written whatever a
// bare block is read as: it comes behind the defaults and before the overrides.
func (f *fold) apply(layer int, s side, take taker) error {
	l := &f.layers[layer]
	for _, kind := range [...]Block{Object, Defaults, Bare, Overrides} {
		for i := range l.Blocks {
			b := &l.Blocks[i]
			if b.Block != kind || len(b.Rules) == 0 {
				continue
			}
			as := l.Reading(b)
			if !s.has(as.Block) {
				continue
			}
			if err := f.applyBlock(layer, b, as, take); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fold) applyBlock(layer int, b *Rules, as Reading, take taker) error {
	from := Origin{Policy: f.layers[layer].Policy, Block: as.Block, Conditional: b.When != nil}
	met, err := f.met(from, b.When)
	if err != nil {
		return err
	}
	part := &f.part[layer]
	if !met {
		part.silent |= 1 << b.Block
		return nil
	}
	part.took |= 1 << b.Block
	if b.Block == Bare {
		part.bareAs |= 1 << as.Block
	}
	take(from, as.Strategy, b.Rules)
	return nil
}

// met evaluates the condition of a block. What cannot be evaluated does not
// dodge a constraint: an overrides block then applies, a defaults block not.
func (f *fold) met(from Origin, when Condition) (bool, error) {
	if when == nil {
		return true, nil
	}
	a := when.Evaluate(specOf(f.rules))
	if f.meter != nil {
		if err := f.meter.Spend(from.Policy, a.Cost); err != nil {
			return false, err
		}
	}
	if a.Err != nil || a.Missing != "" && a.Neighbours {
		f.notes = append(f.notes, Note{Policy: from.Policy, Block: from.Block, When: when, Answer: a})
	}
	if a.Err != nil {
		return from.Block == Overrides, nil
	}
	return a.Met && a.Missing == "", nil
}

// joinUnset adds the unset list of a layer to that of E.
func (f *fold) joinUnset(layer int) {
	if p := f.layers[layer].Policy; len(p.Unset) > 0 {
		f.unset = append(f.unset, unsetBy{NewNames(p.Unset), p})
	}
}
