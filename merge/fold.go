package merge

import (
	"slices"
)

// Origin is where a surviving rule came from, or what beat a lost one.
type Origin struct {
	Policy *Policy
	Block  Block
	// Conditional tells that the block stands under a `when`.
	Conditional bool
}

// Effective is a rule of the effective policy.
type Effective struct {
	*Rule
	// From set the value last.
	From Origin
	// same are origins whose equal value met this one: they survive with it.
	same []Origin
}

// Lost is a rule that is not in the effective policy.
type Lost struct {
	*Rule
	Block Block
	// To beat it: the holder of its place when it was lost, or, for a block
	// refused as a whole, the lowest policy with a rule.
	To Origin
}

// Note is something about a condition that its readers should be told.
type Note struct {
	Policy *Policy
	Block  Block
	When   Condition
	// Answer has Err set, or Missing with Neighbours.
	Answer Answer
}

// Outcome is what became of one policy on the path.
type Outcome struct {
	Policy *Policy
	// Rules counts the keys of the blocks that took part, each key once.
	Rules int
	// TookPart tells that some block with a rule took part.
	TookPart bool
	// Silent tells that some block with a rule did not, its condition not met.
	Silent bool
	// Lost rules, sorted by key, each key once.
	Lost []Lost

	took uint8
}

// Took reports whether a block took part.
func (o *Outcome) Took(b Block) bool { return o.took&(1<<b) != 0 }

// Result is an effective policy with its history. It is shared and never
// edited.
type Result struct {
	// Rules are sorted by key. A rule whose value is nil holds its place and
	// is not part of the spec.
	Rules []Effective
	// Outcomes of the policies, from the highest to the lowest, each once.
	Outcomes []Outcome
	// Notes in the order in which the conditions were evaluated.
	Notes []Note
}

// Spec returns the effective spec. The values in it are shared: do not edit.
func (r *Result) Spec() map[string]any { return specOf(r.Rules) }

// Meter limits what conditions may cost.
type Meter interface {
	// Spend books the cost of one evaluation; an error ends the fold.
	Spend(cost uint64) error
}

// Fold computes the effective policy of the layers, which may come in any
// order (SEMANTICS section 3). A nil meter does not limit. The only error is
// the meter's.
func Fold(layers []Layer, meter Meter) (*Result, error) {
	ordered := slices.Clone(layers) // the caller keeps its order
	slices.SortStableFunc(ordered, func(a, b Layer) int { return Compare(b, a) })
	f := fold{meter: meter, layers: ordered, part: make([]participation, len(ordered))}
	for i, l := range ordered {
		if err := f.apply(i, l.Policy); err != nil {
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
}

// participation is which blocks of a layer took part, one bit per Block.
type participation struct{ took, silent uint8 }

type unsetBy struct {
	Names
	policy *Policy
}

type lostKey struct {
	policy *Policy
	path   string
}

func (f *fold) apply(layer int, p *Policy) error {
	for _, kind := range []Block{Object, Defaults, Bare, Overrides} {
		for i := range p.Blocks {
			if p.Blocks[i].Block != kind || len(p.Blocks[i].Rules) == 0 {
				continue
			}
			if err := f.applyBlock(&f.part[layer], p, &p.Blocks[i]); err != nil {
				return err
			}
		}
	}
	if len(p.Unset) > 0 {
		f.unset = append(f.unset, unsetBy{NewNames(p.Unset), p})
	}
	return nil
}

func (f *fold) applyBlock(part *participation, p *Policy, b *Rules) error {
	met, err := f.met(p, b)
	if err != nil {
		return err
	}
	if !met {
		part.silent |= 1 << b.Block
		return nil
	}
	part.took |= 1 << b.Block
	from := Origin{Policy: p, Block: b.Block, Conditional: b.When != nil}
	if b.Block == Overrides {
		f.override(from, b)
	} else {
		f.defaults(from, b)
	}
	return nil
}

// met evaluates the condition of a block. What cannot be evaluated does not
// dodge a constraint: an overrides block then applies, a defaults block not.
func (f *fold) met(p *Policy, b *Rules) (bool, error) {
	if b.When == nil {
		return true, nil
	}
	a := b.When.Evaluate(specOf(f.rules))
	if f.meter != nil {
		if err := f.meter.Spend(a.Cost); err != nil {
			return false, err
		}
	}
	if a.Err != nil || a.Missing != "" && a.Neighbours {
		f.notes = append(f.notes, Note{Policy: p, Block: b.Block, When: b.When, Answer: a})
	}
	if a.Err != nil {
		return b.Block == Overrides, nil
	}
	return a.Met && a.Missing == "", nil
}

func (f *fold) defaults(from Origin, b *Rules) {
	left := f.withoutUnset(from, b.Rules)
	switch {
	case len(left) == 0:
	case len(f.rules) == 0:
		f.rules = left
	case b.Strategy == Atomic:
		f.refuse(left)
	default:
		f.rules = f.overlay(f.rules, left)
	}
}

func (f *fold) override(from Origin, b *Rules) {
	set := effective(from, b.Rules)
	if b.Strategy != Atomic {
		f.set(set)
		return
	}
	old := f.rules
	f.rules = set
	for _, e := range old {
		if i, ok := find(set, e.Key); ok && Equal(set[i].Value, e.Value) {
			set[i].share(e)
			continue
		}
		f.lose(e, from)
	}
}

// withoutUnset takes out of a defaults block what lower policies unset.
func (f *fold) withoutUnset(from Origin, rules []Rule) []Effective {
	out := make([]Effective, 0, len(rules))
	for i := range rules {
		e := Effective{Rule: &rules[i], From: from}
		if by := f.unsetBy(from.Policy, rules[i].Key); by != nil {
			f.lose(e, Origin{Policy: by, Block: Unset})
			continue
		}
		out = append(out, e)
	}
	return out
}

// unsetBy returns the lowest policy that unsets a key of p, or nil.
func (f *fold) unsetBy(p *Policy, k Key) *Policy {
	for _, u := range f.unset {
		if u.policy != p && u.Match(k) {
			return u.policy
		}
	}
	return nil
}

// set puts rules into E, the empty maps among them last: they replace nothing,
// but find their places as the others leave them.
func (f *fold) set(rules []Effective) {
	isHollow := func(e Effective) bool { return e.Hollow }
	if !slices.ContainsFunc(rules, isHollow) {
		f.rules = f.overlay(rules, f.rules)
		return
	}
	hollow := slices.DeleteFunc(slices.Clone(rules), func(e Effective) bool { return !e.Hollow })
	f.rules = f.overlay(slices.DeleteFunc(rules, isHollow), f.rules)
	f.rules = f.overlay(f.placed(hollow), f.rules)
}

// placed takes out the empty maps whose place holds a rule. Both lists are
// sorted, so that the last rule before a key is the only one that can hold it.
func (f *fold) placed(hollow []Effective) []Effective {
	var above *Effective
	i := 0
	return slices.DeleteFunc(hollow, func(e Effective) bool {
		for ; i < len(f.rules) && f.rules[i].Key.Compare(e.Key) <= 0; i++ {
			if !f.rules[i].Hollow {
				above = &f.rules[i]
			}
		}
		if above == nil || !above.Key.Holds(e.Key) {
			return false
		}
		f.lose(e, above.From)
		return true
	})
}

// refuse books the loss of an atomic defaults block, save for the rules that
// met an equal value.
func (f *fold) refuse(block []Effective) {
	to := f.lowest()
	for _, b := range block {
		if i, ok := find(f.rules, b.Key); ok && Equal(f.rules[i].Value, b.Value) {
			f.rules[i].share(b)
			continue
		}
		f.lose(b, to)
	}
}

// lowest returns the origin of the lowest policy with a rule in E.
func (f *fold) lowest() Origin {
	for _, l := range f.layers {
		for _, e := range f.rules {
			if e.From.Policy == l.Policy {
				return e.From
			}
		}
	}
	return Origin{}
}
