package merge

// Origin is where an effective rule comes from, or what beat a lost rule.
type Origin struct {
	Policy *Policy
	Block  Block
	// Conditional is set if the block has a `when`.
	Conditional bool
}

// Effective is a rule of the effective policy.
type Effective struct {
	*Rule
	// From is the origin of the value.
	From Origin
}

// Lost is a rule that is not in the effective policy.
type Lost struct {
	*Rule
	// Block of the rule.
	Block Block
	// Equal is set if the effective rule of the same key, which is from another policy,
	// has an equal value.
	Equal bool
	// Whole is set if all rules of the block were lost together: an atomic block
	// replaced or rejected them, or a policy without rules did.
	Whole bool
	// To is what beat it: the rule in its place when it was lost, or, for a block that
	// was rejected as a whole, the lowest other policy with a rule.
	To Origin
	// InForce is the policy that is finally in force, if To's rule was lost in turn;
	// nil otherwise.
	InForce *Policy
}

// Note is a notice about a condition, for its users.
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
	// Rules are sorted by key. A rule whose value is nil takes its place and is not
	// part of the spec.
	Rules []Effective
	// Outcomes of the policies, from the highest to the lowest, each once.
	Outcomes []Outcome
	// Notes in the order in which the conditions were evaluated.
	Notes []Note
}

// Spec returns the effective spec. Its values are shared and must not be edited.
func (r *Result) Spec() map[string]any { return specOf(r.Rules, true) }

// At returns the rule of a key that is in the effective policy, or nil.
func (r *Result) At(k Key) *Effective {
	if i, ok := find(r.Rules, k); ok {
		return &r.Rules[i]
	}
	return nil
}
