package merge

import "slices"

// Meter limits the cost of conditions.
type Meter interface {
	// Spend charges the cost of an evaluation of a condition of policy by. With nil
	// and 0 it only checks whether the fold may continue. An error ends the fold.
	Spend(by *Policy, cost uint64) error
}

// Fold computes the effective policy of the layers, which may come in any
// order (SEMANTICS section 3). With a nil meter there is no limit. The only error
// is the meter's.
func Fold(layers []Layer, meter Meter) (*Result, error) {
	f := foldPool.Get().(*fold) //nolint:forcetypeassert // it has no other values
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

// fold is the state of a Fold: E of SEMANTICS section 3 and its history.
type fold struct {
	buffers
	meter         Meter
	outcomes      []Outcome
	policyIndexes map[*Policy]policyIndex // nil for few layers
	unset         unsetIndex              // index of unsets, nil for few
	notes         []Note
	rulesSeen     int // rules of the layers applied so far
	current       int // the layer that is applied
	nesting       nesting

	// Computed from E, until E changes.
	spec map[string]any
	low  [2]Origin // of the two lowest policies with a rule in E
}

// addLayers sorts the layers, the lowest first, and adds the outcomes of their policies,
// from the highest to the lowest.
func (f *fold) addLayers(layers []Layer) {
	f.layers = append(f.layers[:0], layers...) // the caller keeps its order
	slices.Reverse(f.layers)                   // mostly they come from the highest to the lowest
	lower := func(a, b Layer) int { return Compare(b, a) }
	if !slices.IsSortedFunc(f.layers, lower) {
		slices.SortFunc(f.layers, lower)
	}
	f.outcomes = make([]Outcome, 0, len(layers))
	if len(layers) > smallCount {
		f.policyIndexes = make(map[*Policy]policyIndex, len(layers))
	}
	for i, l := range slices.Backward(f.layers) {
		n := f.outcomeOf(l.Policy) // at two levels, counted once
		if n < 0 {
			n = len(f.outcomes)
			f.outcomes = append(f.outcomes, Outcome{Policy: l.Policy, Part: l.Part})
		}
		if f.policyIndexes != nil {
			f.policyIndexes[l.Policy] = policyIndex{outcome: n, lowest: i}
		}
	}
}

// setRules replaces E, and returns the old list to be reused.
func (f *fold) setRules(list []Effective) []Effective {
	was := f.rules
	f.rules, f.spec, f.low = list, nil, [2]Origin{}
	return was
}

// meterThreshold is the number of rules that are folded without checking the meter:
// their cost is negligible.
const meterThreshold = 256

// checkMeter checks the meter before a layer is applied, once there are many rules: the
// cost of a layer grows with them, and most layers have no condition to charge.
func (f *fold) checkMeter(l *Layer) error {
	for _, b := range l.In(l.Part) {
		f.rulesSeen += len(b.Rules)
	}
	if f.meter == nil || f.rulesSeen <= meterThreshold {
		return nil
	}
	return f.meter.Spend(nil, 0)
}

// blockFilter selects blocks by what they act as.
type blockFilter uint8

const (
	allBlocks       blockFilter = iota
	exceptOverrides             // all except overrides
	onlyOverrides               // overrides
)

// includes reports whether the filter selects a block that acts as b.
func (f blockFilter) includes(b Block) bool {
	return f == allBlocks || (f == onlyOverrides) == (b == Overrides)
}

// blockFunc applies the rules of a block whose condition is met.
type blockFunc func(from Origin, s Strategy, rules []Rule)

// apply calls apply for the selected blocks of a layer whose conditions are met, in
// their order. The order does not depend on what a bare block acts as: it comes after
// the defaults and before the overrides.
func (f *fold) apply(layer int, s blockFilter, apply blockFunc) error {
	l := &f.layers[layer]
	f.current = layer
	if err := f.checkMeter(l); err != nil {
		return err
	}
	blocks := l.In(l.Part)
	for _, kind := range [...]Block{Object, Defaults, Bare, Overrides} {
		for i := range blocks {
			b := &blocks[i]
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
