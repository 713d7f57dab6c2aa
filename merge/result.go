package merge

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
