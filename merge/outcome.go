package merge

import "slices"

// Outcome is what became of one policy on the path.
type Outcome struct {
	Policy *Policy
	// Rules counts the keys of the blocks that took part, each key once.
	Rules int
	// TookPart tells that some block with a rule took part.
	TookPart bool
	// Silent tells that some block with a rule did not, its condition not met.
	Skipped bool
	participation
	// Lost rules, sorted by key, each key once.
	Lost []Lost
}

// Took reports whether a block that the policy writes as b took part, whatever
// it was read as.
func (o *Outcome) BlockApplied(b Block) bool { return o.applied&(1<<b) != 0 }

// Acted reports whether a block that the policy writes as b took part as as:
// as itself, or as the path reads bare blocks (Layer.As). A policy at two
// levels may have done both.
func (o *Outcome) AppliedAs(b, as Block) bool {
	if b == Bare {
		return o.bareAs&(1<<as) != 0
	}
	return b == as && o.BlockApplied(b)
}

// participation is which blocks of a policy took part, one bit per Block.
type participation struct {
	applied  uint8 // as the policy writes them
	bareAs   uint8 // what the bare blocks that took part were read as
	repeated bool  // more than one did, or one at two levels
}

// join books that a block which the policy writes as b took part as as.
func (o *Outcome) recordBlock(b, as Block) {
	o.repeated = o.TookPart
	o.TookPart = true
	o.applied |= 1 << b
	if b == Bare {
		o.bareAs |= 1 << as
	}
}

// ReplacedBy returns the policy that replaces this one whole on the path: every
// rule that took part was lost with its block, and to that policy. It is nil if
// none does; the fields of the route itself are no policy.
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

// place is where a policy stands in a fold.
type policyIndex struct {
	outcome int
	lowest  int // layer
}

// few is how many layers most paths have at most: they are looked through one
// by one.
const smallCount = 8

// enter puts the layers in order, the lowest first, and makes the outcomes of
// their policies, from the highest to the lowest.
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
			f.outcomes = append(f.outcomes, Outcome{Policy: l.Policy})
		}
		if f.policyIndexes != nil {
			f.policyIndexes[l.Policy] = policyIndex{outcome: n, lowest: i}
		}
	}
}

// outcomeOf returns the place of a policy's outcome, -1 for none.
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

// kept returns the rules of E for the result, which shares no room with the
// fold.
func (f *fold) copyRules() []Effective {
	if len(f.rules) == 0 {
		return nil
	}
	out := make([]Effective, len(f.rules))
	copy(out, f.rules)
	return out
}

// books is what settle counts for one outcome.
type tally struct {
	losses    int     // how many, and then where the next of them goes
	survives  bool    // some rule does
	successor *Policy // what is in force in place of a policy that lost every rule
}

// settle tells in the outcomes which rules survive and which were lost.
func (f *fold) finishOutcomes() {
	var room [smallCount]tally
	all := room[:]
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

// survive counts a rule of E for its policy. What another block of the
// policy, or the same on another level, lost at that place is not lost then.
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

// handOut gives each outcome its losses.
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

// take books losses, in the order in which they happened, as those of an
// outcome: the last of each key, unless the rule survives.
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
