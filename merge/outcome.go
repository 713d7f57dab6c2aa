package merge

import "slices"

// Outcome is the result of a fold for one policy.
type Outcome struct {
	Policy *Policy
	// Part is Layer.Part of the policy's first layer.
	Part int
	// Rules is the number of keys of the applied blocks, each key once.
	Rules int
	// TookPart is set if a block with rules was applied.
	TookPart bool
	// Skipped is set if a block with rules was not applied, because its condition was
	// not met.
	Skipped bool
	participation
	// Lost rules, sorted by key, each key once.
	Lost []Lost
}

// Blocks returns the blocks of the policy that are read on the path.
func (o *Outcome) Blocks() []Rules { return o.Policy.In(o.Part) }

// BlockApplied reports whether block b of the policy was applied, whatever it acted as.
func (o *Outcome) BlockApplied(b Block) bool { return o.applied&(1<<b) != 0 }

// AppliedAs reports whether block b of the policy was applied as another one: as itself,
// or as Layer.As sets for bare blocks. A policy at two levels may have both.
func (o *Outcome) AppliedAs(b, as Block) bool {
	if b == Bare {
		return o.bareAs&(1<<as) != 0
	}
	return b == as && o.BlockApplied(b)
}

// participation is which blocks of a policy were applied, one bit per Block.
type participation struct {
	applied  uint8 // as they are in the policy
	bareAs   uint8 // what the applied bare blocks acted as
	repeated bool  // more than one was applied, or one at two levels
}

// recordBlock records that block b of the policy was applied as another one.
func (o *Outcome) recordBlock(b, as Block) {
	o.repeated = o.TookPart
	o.TookPart = true
	o.applied |= 1 << b
	if b == Bare {
		o.bareAs |= 1 << as
	}
}

// ReplacedBy returns the policy that replaces this one as a whole: every applied rule
// was lost to it, with its block. It is nil if there is none; fields of the route itself
// do not count.
func (o *Outcome) ReplacedBy() *Policy {
	if len(o.Lost) == 0 || len(o.Lost) < o.Rules {
		return nil
	}
	by := o.Lost[0].To.Policy
	if slices.ContainsFunc(o.Lost, func(l Lost) bool { return !l.Whole || l.To.Policy != by || l.To.Block == Object }) {
		return nil
	}
	return by
}

// LostAt returns the rule of a key that the policy lost, or nil.
func (o *Outcome) LostAt(k Key) *Lost {
	i, ok := slices.BinarySearchFunc(o.Lost, k, func(l Lost, k Key) int { return l.Key.Compare(k) })
	if !ok {
		return nil
	}
	return &o.Lost[i]
}

// policyIndex is the position of a policy in a fold.
type policyIndex struct {
	outcome int // index of its outcome
	lowest  int // index of its lowest layer
}

// smallCount is the number of items up to which lists are searched linearly. Most paths
// have fewer layers.
const smallCount = 8

// outcomeOf returns the index of a policy's outcome, -1 if there is none.
func (f *fold) outcomeOf(p *Policy) int {
	if f.policyIndexes != nil {
		if at, ok := f.policyIndexes[p]; ok {
			return at.outcome
		}
		return -1
	}
	for i := range f.outcomes {
		if f.outcomes[i].Policy == p {
			return i
		}
	}
	return -1
}

// lowestOf returns the lowest layer of a policy.
func (f *fold) lowestOf(p *Policy) int {
	if f.policyIndexes != nil {
		return f.policyIndexes[p].lowest
	}
	return slices.IndexFunc(f.layers, func(l Layer) bool { return l.Policy == p })
}

// copyRules returns a copy of E for the result, which does not share memory with the
// fold.
func (f *fold) copyRules() []Effective {
	if len(f.rules) == 0 {
		return nil
	}
	out := make([]Effective, len(f.rules))
	copy(out, f.rules)
	return out
}

// tally is what finishOutcomes counts for an outcome.
type tally struct {
	losses    int     // their number, and then the index of the next
	survives  bool    // a rule is in effect
	successor *Policy // the policy in force in place of one that lost all its rules
}

// finishOutcomes sets the number of rules and the losses of the outcomes.
func (f *fold) finishOutcomes() {
	var array [smallCount]tally
	all := array[:]
	if len(f.outcomes) > smallCount {
		all = make([]tally, len(f.outcomes))
	}
	for i := range f.losses {
		all[f.outcomeOf(f.losses[i].of)].losses++
	}
	for i := range f.rules {
		f.countSurvivor(all, i, f.rules[i].From.Policy)
	}
	if len(f.losses) > 0 {
		f.distributeLosses(all)
	}
}

// countSurvivor counts a rule of E for its policy. If another block of the policy, or the
// same block on another level, lost the rule, it is not lost after all.
func (f *fold) countSurvivor(all []tally, rule int, p *Policy) {
	n := f.outcomeOf(p)
	o, b := &f.outcomes[n], &all[n]
	b.survives = true
	o.Rules++
	if o.repeated && b.losses > 0 {
		b.losses++
		f.losses = append(f.losses, loss{Lost{Rule: f.rules[rule].Rule}, p})
	}
}

// distributeLosses sets the losses of each outcome.
func (f *fold) distributeLosses(all []tally) {
	f.findSuccessors(all)
	lost := make([]Lost, len(f.losses))
	next := 0
	for i := range f.outcomes {
		all[i].losses, next = next, next+all[i].losses
	}
	for i := range f.losses {
		b := &all[f.outcomeOf(f.losses[i].of)]
		lost[b.losses] = f.losses[i].Lost
		b.losses++
	}
	start := 0
	for i := range f.outcomes {
		end := all[i].losses
		f.setLosses(&f.outcomes[i], lost[start:end:end], all)
		start = end
	}
}

// setLosses sets the losses of an outcome: the last loss of each key, unless the rule is
// in effect. The given losses are in the order in which they were recorded.
func (f *fold) setLosses(o *Outcome, lost []Lost, all []tally) {
	byKey := func(a, b Lost) int { return a.Key.Compare(b.Key) }
	if !slices.IsSortedFunc(lost, byKey) {
		slices.SortStableFunc(lost, byKey)
	}
	last := lost[:0]
	for i, l := range lost {
		if i+1 < len(lost) && lost[i+1].Key.path == l.Key.path || l.To.Policy == nil {
			continue
		}
		f.completeLoss(&l, all)
		last = append(last, l)
	}
	o.Rules += len(last)
	if len(last) > 0 {
		o.Lost = last
	}
}
