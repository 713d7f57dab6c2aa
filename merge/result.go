package merge

import "slices"

// Origin is where a surviving rule came from, or what beat a lost one.
type Origin struct {
	Policy *Policy
	// Block is what the block acted as on this path (Layer.As).
	Block Block
	// Conditional tells that the block stands under a `when`.
	Conditional bool
}

// Effective is a rule of the effective policy.
type Effective struct {
	*Rule
	// From set the value last.
	From Origin
}

// Lost is a rule that is not in the effective policy.
type Lost struct {
	*Rule
	// Block is what the rule's own block acted as.
	Block Block
	// Equal tells that the effective rule of the same key, which is from another
	// policy, has an equal value.
	Equal bool
	// Whole tells that it was lost with all others of its block: an atomic block
	// replaced or refused them together, or a policy without a rule did.
	Whole bool
	// To beat it: the holder of its place when it was lost, or, for a block
	// refused as a whole, the lowest other policy with a rule.
	To Origin
	// InForce is the policy that is in force in the end, where To's rule was lost
	// in turn; nil where it was not.
	InForce *Policy
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
	participation
	// Lost rules, sorted by key, each key once.
	Lost []Lost
}

// Took reports whether a block that the policy writes as b took part, whatever
// it was read as.
func (o *Outcome) Took(b Block) bool { return o.took&(1<<b) != 0 }

// Acted reports whether a block that the policy writes as b took part as as:
// as itself, or as the path reads bare blocks (Layer.As). A policy at two
// levels may have done both.
func (o *Outcome) Acted(b, as Block) bool {
	if b == Bare {
		return o.bareAs&(1<<as) != 0
	}
	return b == as && o.Took(b)
}

// participation is which blocks of a policy took part, one bit per Block.
type participation struct {
	took   uint8 // as the policy writes them
	bareAs uint8 // what the bare blocks that took part were read as
	again  bool  // more than one did, or one at two levels
}

// join books that a block which the policy writes as b took part as as.
func (o *Outcome) join(b, as Block) {
	o.again = o.TookPart
	o.TookPart = true
	o.took |= 1 << b
	if b == Bare {
		o.bareAs |= 1 << as
	}
}

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
func (r *Result) Spec() map[string]any { return specOf(r.Rules, true) }

// At returns the rule of a key that is in the effective policy, or nil.
func (r *Result) At(k Key) *Effective {
	if i, ok := find(r.Rules, k); ok {
		return &r.Rules[i]
	}
	return nil
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
