package merge

import "slices"

// outcomes tells what became of each policy, from the highest to the lowest.
func (f *fold) outcomes() []Outcome {
	out := make([]Outcome, 0, len(f.layers))
	for _, l := range slices.Backward(f.layers) {
		p := l.Policy
		if slices.ContainsFunc(out, func(o Outcome) bool { return o.Policy == p }) {
			continue // at two levels, counted once
		}
		out = append(out, f.outcome(p))
	}
	return out
}

func (f *fold) outcome(p *Policy) Outcome {
	o := Outcome{Policy: p}
	var part participation
	for i, l := range f.layers {
		if l.Policy == p {
			part.took |= f.part[i].took
			part.silent |= f.part[i].silent
			part.bareAs |= f.part[i].bareAs
		}
	}
	o.participation, o.TookPart, o.Silent = part, part.took != 0, part.silent != 0
	for _, r := range rulesOf(p, part.took) {
		if f.survives(p, r.Key) {
			o.Rules++
		} else if l, ok := f.lost[lostKey{p, r.Key.path}]; ok { // else of a second block of that name, silent
			o.Rules++
			o.Lost = append(o.Lost, l)
		}
	}
	return o
}

// survives reports whether the effective rule of a key comes from p, or met
// an equal value of it.
func (f *fold) survives(p *Policy, k Key) bool {
	i, ok := find(f.rules, k)
	return ok && (f.rules[i].From.Policy == p ||
		slices.ContainsFunc(f.rules[i].same, func(o Origin) bool { return o.Policy == p }))
}

// rulesOf returns the rules of the blocks in the set, sorted, each key once.
func rulesOf(p *Policy, set uint8) []Rule {
	var rules []Rule
	blocks := 0
	for _, b := range p.Blocks {
		if set&(1<<b.Block) == 0 || len(b.Rules) == 0 {
			continue
		}
		if blocks++; blocks == 1 {
			rules = b.Rules
			continue
		}
		rules = append(slices.Clip(rules), b.Rules...)
	}
	if blocks > 1 {
		slices.SortStableFunc(rules, func(a, b Rule) int { return a.Key.Compare(b.Key) })
		rules = slices.CompactFunc(rules, func(a, b Rule) bool { return a.Key == b.Key })
	}
	return rules
}

// specOf builds the nested spec of sorted rules. It never writes into a value,
// which is not its own: a rule that lies below another one, as only a block
// that is not tidy can have it, is not shown.
func specOf(rules []Effective) map[string]any {
	spec := make(map[string]any)
	var above *Effective
	for i := range rules {
		e := &rules[i]
		segments := e.Key.Segments()
		if e.Value == nil || len(segments) == 0 || above != nil && above.Key.Holds(e.Key) {
			continue
		}
		if !e.Hollow {
			above = e
		}
		at := spec
		for _, s := range segments[:len(segments)-1] {
			next, ok := at[s].(map[string]any)
			if !ok {
				next = make(map[string]any)
				at[s] = next
			}
			at = next
		}
		at[segments[len(segments)-1]] = valueOf(e)
	}
	return spec
}

// valueOf returns the value to put into a spec: a hollow one is made anew,
// because rules below it are written into it.
func valueOf(e *Effective) any {
	if e.Hollow {
		return make(map[string]any)
	}
	return e.Value
}
