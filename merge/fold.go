package merge

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
	f := folds.Get().(*fold) //nolint:forcetypeassert // it holds nothing else
	defer f.release()
	f.meter = meter
	f.enter(layers)
	for next := 0; next < len(f.layers); {
		start := next
		next = groupEnd(f.layers, start)
		if err := f.applyGroup(start, next); err != nil {
			return nil, err
		}
	}
	f.settle()
	return &Result{Rules: f.kept(), Outcomes: f.outcomes, Notes: f.notes}, nil
}

// fold is the state of one Fold: E of SEMANTICS section 3 and its history.
type fold struct {
	room
	meter    Meter
	outcomes []Outcome
	places   map[*Policy]place // nil for few layers
	unset    unsetters         // of those in room, once they are many
	notes    []Note
	seen     int // rules of the layers applied so far
	tidy     tidiness

	// What was worked out of E, until E changes.
	spec map[string]any
	low  [2]Origin // of the two lowest policies with a rule in E
}

// become makes a list E, and returns the one that was E: it is room again.
func (f *fold) become(list []Effective) []Effective {
	was := f.rules
	f.rules, f.spec, f.low = list, nil, [2]Origin{}
	return was
}

// unasked is how many rules are folded without asking the meter: so few cost
// less than anyone could notice.
const unasked = 256

// goOn asks the meter whether a layer may be applied, once many rules were met:
// what one costs grows with them, and most have no condition that would ask.
func (f *fold) goOn(l *Layer) error {
	for i := range l.Blocks {
		f.seen += len(l.Blocks[i].Rules)
	}
	if f.meter == nil || f.seen <= unasked {
		return nil
	}
	return f.meter.Spend(nil, 0)
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
	if err := f.goOn(l); err != nil {
		return err
	}
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
			if err := f.applyBlock(l.Policy, b, as, take); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fold) applyBlock(p *Policy, b *Rules, as Reading, take taker) error {
	from := Origin{Policy: p, Block: as.Block, Conditional: b.When != nil}
	met, err := f.met(from, b.When)
	if err != nil {
		return err
	}
	o := &f.outcomes[f.outcomeOf(p)]
	if !met {
		o.Silent = true
		return nil
	}
	o.join(b.Block, as.Block)
	if as.By != nil {
		f.replaced(from, as.By, b.Rules)
		return nil
	}
	take(from, as.Strategy, b.Rules)
	return nil
}

// replaced books the loss of a block to a policy without a rule that replaces
// those above it.
func (f *fold) replaced(from Origin, by *Policy, rules []Rule) {
	f.block = effective(f.block[:0], from, rules)
	f.loseWhole(f.block, Origin{Policy: by, Block: Bare})
}

// met evaluates the condition of a block. What cannot be evaluated does not
// dodge a constraint: an overrides block then applies, a defaults block not.
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
	if a.Err != nil || a.Missing != "" && a.Neighbours {
		f.notes = append(f.notes, Note{Policy: from.Policy, Block: from.Block, When: when, Answer: a})
	}
	if a.Err != nil {
		return from.Block == Overrides, nil
	}
	return a.Met && a.Missing == "", nil
}
