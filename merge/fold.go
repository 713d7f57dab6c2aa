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
	f := foldPool.Get().(*fold) //nolint:forcetypeassert // it holds nothing else
	defer f.release()
	f.meter = meter
	f.addLayers(layers)
	for next := 0; next < len(f.layers); {
		start := next
		next = groupEnd(f.layers, start)
		if err := f.applyGroup(start, next); err != nil {
			return nil, err
		}
	}
	f.finishOutcomes()
	return &Result{Rules: f.copyRules(), Outcomes: f.outcomes, Notes: f.notes}, nil
}

// fold is the state of one Fold: E of SEMANTICS section 3 and its history.
type fold struct {
	buffers
	meter         Meter
	outcomes      []Outcome
	policyIndexes map[*Policy]policyIndex // nil for few layers
	unset         unsetIndex              // of those in room, once they are many
	notes         []Note
	rulesSeen     int // rules of the layers applied so far
	nesting       nesting

	// What was worked out of E, until E changes.
	spec map[string]any
	low  [2]Origin // of the two lowest policies with a rule in E
}

// become makes a list E, and returns the one that was E: it is room again.
func (f *fold) setRules(list []Effective) []Effective {
	was := f.rules
	f.rules, f.spec, f.low = list, nil, [2]Origin{}
	return was
}

// unasked is how many rules are folded without asking the meter: so few cost
// less than anyone could notice.
const meterThreshold = 256

// goOn asks the meter whether a layer may be applied, once many rules were met:
// what one costs grows with them, and most have no condition that would ask.
func (f *fold) checkMeter(l *Layer) error {
	for i := range l.Blocks {
		f.rulesSeen += len(l.Blocks[i].Rules)
	}
	if f.meter == nil || f.rulesSeen <= meterThreshold {
		return nil
	}
	return f.meter.Spend(nil, 0)
}

// side chooses blocks by what they act as.
type blockFilter uint8

const (
	allBlocks       blockFilter = iota
	exceptOverrides             // all but overrides
	onlyOverrides               // overrides
)

// has reports whether a block that acts as b is on this side.
func (s blockFilter) includes(b Block) bool {
	return s == allBlocks || (s == onlyOverrides) == (b == Overrides)
}

// taker does with a block that takes part what is to be done with it.
type blockFunc func(from Origin, s Strategy, rules []Rule)

// apply gives the blocks of a layer that are on a side and take part to take,
// in their order. That order is the one in which they are written whatever a
// bare block is read as: it comes behind the defaults and before the overrides.
func (f *fold) apply(layer int, s blockFilter, apply blockFunc) error {
	l := &f.layers[layer]
	if err := f.checkMeter(l); err != nil {
		return err
	}
	for _, kind := range [...]Block{Object, Defaults, Bare, Overrides} {
		for i := range l.Blocks {
			b := &l.Blocks[i]
			if b.Block != kind || len(b.Rules) == 0 {
				continue
			}
			as := l.Reading(b)
			if !s.includes(as.Block) {
				continue
			}
			if err := f.applyBlock(l.Policy, b, as, apply); err != nil {
				return err
			}
		}
	}
	return nil
}

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

// replaced books the loss of a block to a policy without a rule that replaces
// those above it.
func (f *fold) replaced(from Origin, by *Policy, rules []Rule) {
	f.block = effective(f.block[:0], from, rules)
	f.recordBlockLoss(f.block, Origin{Policy: by, Block: Bare})
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
	if a.Err != nil || a.Missing != "" && a.HasSiblings {
		f.notes = append(f.notes, Note{Policy: from.Policy, Block: from.Block, When: when, Answer: a})
	}
	if a.Err != nil {
		return from.Block == Overrides, nil
	}
	return a.Met && a.Missing == "", nil
}
