package merge

import "slices"

// place is where a policy stands in a fold.
type place struct {
	outcome int
	lowest  int // layer
}

// few is how many layers most paths have at most: they are looked through one
// by one.
const few = 8

// enter puts the layers in order, the lowest first, and makes the outcomes of
// their policies, from the highest to the lowest.
func (f *fold) enter(layers []Layer) {
	f.layers = append(f.layers[:0], layers...) // the caller keeps its order
	slices.Reverse(f.layers)                   // mostly they come from the highest to the lowest
	lower := func(a, b Layer) int { return Compare(b, a) }
	if !slices.IsSortedFunc(f.layers, lower) {
		slices.SortFunc(f.layers, lower)
	}
	f.outcomes = make([]Outcome, 0, len(layers))
	if len(layers) > few {
		f.places = make(map[*Policy]place, len(layers))
	}
	for i, l := range slices.Backward(f.layers) {
		n := f.outcomeOf(l.Policy) // at two levels, counted once
		if n < 0 {
			n = len(f.outcomes)
			f.outcomes = append(f.outcomes, Outcome{Policy: l.Policy})
		}
		if f.places != nil {
			f.places[l.Policy] = place{outcome: n, lowest: i}
		}
	}
}

// outcomeOf returns the place of a policy's outcome, -1 for none.
func (f *fold) outcomeOf(p *Policy) int {
	if f.places != nil {
		if at, ok := f.places[p]; ok {
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
	if f.places != nil {
		return f.places[p].lowest
	}
	return slices.IndexFunc(f.layers, func(l Layer) bool { return l.Policy == p })
}

// kept returns the rules of E for the result, which shares no room with the
// fold.
func (f *fold) kept() []Effective {
	if len(f.rules) == 0 {
		return nil
	}
	out := make([]Effective, len(f.rules))
	copy(out, f.rules)
	return out
}

// books is what settle counts for one outcome.
type books struct {
	losses   int     // how many, and then where the next of them goes
	survives bool    // some rule does
	heir     *Policy // what is in force in place of a policy that lost every rule
}

// settle tells in the outcomes which rules survive and which were lost.
func (f *fold) settle() {
	var room [few]books
	all := room[:]
	if len(f.outcomes) > few {
		all = make([]books, len(f.outcomes))
	}
	for i := range f.losses {
		all[f.outcomeOf(f.losses[i].of)].losses++
	}
	for i := range f.rules {
		f.survive(all, i, f.rules[i].From.Policy)
	}
	if len(f.losses) > 0 {
		f.handOut(all)
	}
}

// survive counts a rule of E for its policy. What another block of the
// policy, or the same on another level, lost at that place is not lost then.
func (f *fold) survive(all []books, rule int, p *Policy) {
	n := f.outcomeOf(p)
	o, b := &f.outcomes[n], &all[n]
	b.survives = true
	o.Rules++
	if o.again && b.losses > 0 {
		b.losses++
		f.losses = append(f.losses, loss{Lost{Rule: f.rules[rule].Rule}, p})
	}
}

// handOut gives each outcome its losses.
func (f *fold) handOut(all []books) {
	f.heirs(all)
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
		f.take(&f.outcomes[i], lost[start:end:end], all)
		start = end
	}
}

// take books losses, in the order in which they happened, as those of an
// outcome: the last of each key, unless the rule survives.
func (f *fold) take(o *Outcome, lost []Lost, all []books) {
	byKey := func(a, b Lost) int { return a.Key.Compare(b.Key) }
	if !slices.IsSortedFunc(lost, byKey) {
		slices.SortStableFunc(lost, byKey)
	}
	last := lost[:0]
	for i, l := range lost {
		if i+1 < len(lost) && lost[i+1].Key.path == l.Key.path || l.To.Policy == nil {
			continue
		}
		f.inForce(&l, all)
		last = append(last, l)
	}
	o.Rules += len(last)
	if len(last) > 0 {
		o.Lost = last
	}
}
