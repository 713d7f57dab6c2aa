package merge

import (
	"math"
	"slices"
)

// Block is the part of a policy that a rule is in.
type Block uint8

// The blocks of a policy in the order in which the fold applies them, and two that are
// only origins of rules or of losses.
const (
	Defaults  Block = iota
	Bare            // the rules outside any block: a second block of defaults
	Overrides       //
	Object          // a field of the object itself, below every policy
	Unset           // not a block: an unset list removed the rule
)

// String returns the name of the block in results.
func (b Block) String() string {
	return [...]string{"defaults", "bare", "overrides", "object", "unset"}[b]
}

// Strategy is how a block is applied to the existing rules.
type Strategy uint8

const (
	// Atomic applies or rejects the block as a whole.
	Atomic Strategy = iota
	// Merge applies each rule separately.
	Merge
	// Patch is Merge for kinds whose rules are the leaves of the spec
	// (RFC 7386).
	Patch
)

// String returns the name of the strategy in policies.
func (s Strategy) String() string {
	return [...]string{"atomic", "merge", "patch"}[s]
}

// ParseStrategy parses the name of a strategy in policies.
func ParseStrategy(text string) (Strategy, bool) {
	i := slices.Index([]string{"atomic", "merge", "patch"}, text)
	return Strategy(max(i, 0)), i >= 0 //nolint:gosec // 0 to 2
}

// Rule is the smallest part of a policy that is effective or lost as a whole.
type Rule struct {
	Key Key
	// Value is decoded JSON: nil, bool, int64, float64, string, []any or
	// map[string]any; or Packed. It is shared and must not be edited.
	Value any
	// EmptyMap is set for an empty map in a kind whose rules are leaves: it is part of
	// the spec, but replaces nothing.
	EmptyMap bool
	// ItemDepth is set for the value by which a list is merged, that identifies an item of
	// it: the number of segments of the item's key. It is unset with the whole item alone.
	ItemDepth int
	// Group is the group of rules that the rule belongs to.
	Group Group
}

// Condition decides whether a block is applied (`when`).
type Condition interface {
	// Evaluate evaluates the condition on the effective spec at that moment. Values of
	// the spec may be Packed; Evaluate may replace them by unpacked ones.
	Evaluate(spec map[string]any) Answer
	// String returns the expression.
	String() string
}

// Answer is the result of a condition on a spec. The zero Answer is "not met".
type Answer struct {
	Met bool
	// Missing is the path of a key, without "spec.", that the expression reads and the
	// spec does not have. The condition is then not met.
	Missing string
	// HasSiblings is set if the map without the Missing key has other keys.
	HasSiblings bool
	// Err is any other failure to evaluate.
	Err error
	// Cost of the evaluation, in the units of the condition's limit.
	Cost uint64
}

// Rules is a block of a policy.
type Rules struct {
	Block    Block
	Strategy Strategy
	// When is nil for a block that is always applied.
	When Condition
	// Rules are sorted by key, each key once, and none is below another one that is
	// not an EmptyMap.
	Rules []Rule
}

// Condition returns the text of the condition, "" for a block that is always applied.
func (b *Rules) Condition() string {
	if b.When == nil {
		return ""
	}
	return b.When.String()
}

// At returns the rule of a key, or nil.
func (b *Rules) At(k Key) *Rule {
	i, ok := slices.BinarySearchFunc(b.Rules, k, func(r Rule, k Key) int { return r.Key.Compare(k) })
	if !ok {
		return nil
	}
	return &b.Rules[i]
}

// Newest is the creation time of a policy that has none and is written: it is newer than
// any other.
const Newest int64 = math.MaxInt64

// Undated is the creation time of a policy that exists and has none: all such were created
// together, after those that have a time and before any write.
const Undated = Newest - 1

// Policy is the input of a fold: the rules of a policy and its position in the order.
type Policy struct {
	Namespace, Name string
	// Rank is the kind's own order on one level, before age: lower is higher.
	Rank int
	// Created is in seconds since 1970, or Newest or Undated.
	Created int64
	// Blocks are applied in the order of their Block values, the object's own
	// field first, however they are ordered here.
	Blocks []Rules
	// Parts are other blocks that are applied in their place on some paths (Layer.Part).
	Parts [][]Rules
	// Unset removes rules from the defaults of higher policies.
	Unset []Name
}

// In returns the blocks of a part of the policy, 0 for Blocks.
func (p *Policy) In(part int) []Rules {
	if part == 0 {
		return p.Blocks
	}
	return p.Parts[part-1]
}

// Sets reports whether a part of the policy, as In has it, has a rule.
func (p *Policy) Sets(part int) bool {
	return slices.ContainsFunc(p.In(part), func(b Rules) bool { return len(b.Rules) > 0 })
}

// Same reports whether another state of the policy, or the same, is meant: one of its
// namespace and name.
func (p *Policy) Same(o *Policy) bool {
	return p == o || p.Namespace == o.Namespace && p.Name == o.Name
}

// Empty reports whether the policy has no rule.
func (p *Policy) Empty() bool {
	for part := range len(p.Parts) + 1 {
		if p.Sets(part) {
			return false
		}
	}
	return true
}

// Name is an entry of an unset list: a rule key, a prefix of keys, or the bare name of
// a rule.
type Name struct{ key Key }

// ParseName parses an entry of an unset list.
func ParseName(text string) (Name, error) {
	k, err := ParseKey(text)
	if err != nil {
		return Name{}, err
	}
	return Name{key: k}, nil
}

// String returns the name in the format of ParseName.
func (n Name) String() string { return n.key.String() }

// Matches reports whether the name matches the rule of a key.
func (n Name) Matches(k Key) bool {
	return n.key.Holds(k) || n.key.path == k.name()
}

// Names is an index of an unset list. The cost of a lookup depends on the depth of the
// key, not on the length of the list.
type Names struct {
	paths map[string]struct{} // of the keys; that of a bare name is its only segment
}

// NewNames returns the index of a list.
func NewNames(list []Name) Names {
	paths := make(map[string]struct{}, len(list))
	for _, n := range list {
		paths[n.key.path] = struct{}{}
	}
	return Names{paths}
}

// Match reports whether a name of the list matches the rule of a key.
func (n Names) Match(k Key) bool {
	for path := range k.prefixesAndName {
		if _, ok := n.paths[path]; ok {
			return true
		}
	}
	return false
}

// prefixesAndName yields the paths of the names that match the rule of a key: those of
// the key and its ancestors, and that of its bare name.
func (k Key) prefixesAndName(yield func(path string) bool) {
	for i := range len(k.path) {
		if k.path[i] == 0 && !yield(k.path[:i+1]) {
			return
		}
	}
	yield(k.name())
}
