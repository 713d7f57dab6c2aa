package merge

import (
	"math"
	"slices"
)

// Block says which part of a policy a rule stands in.
type Block uint8

// The blocks of a policy in the order in which the fold applies them, and two
// that only say where a rule came from or what took it out.
const (
	Defaults  Block = iota
	Bare            // the rules outside any block: a second block of defaults
	Overrides       //
	Object          // the object's own field, below every policy
	Unset           // not a block: an unset list took the rule out
)

// String returns the name of the block as results show it.
func (b Block) String() string {
	return [...]string{"defaults", "bare", "overrides", "object", "unset"}[b]
}

// Strategy is how a block meets the rules that are there already.
type Strategy uint8

const (
	// Atomic takes or leaves the block as a whole.
	Atomic Strategy = iota
	// Merge compares rule by rule.
	Merge
	// Patch is Merge for kinds whose rules are the leaves of the spec
	// (RFC 7386).
	Patch
)

// String returns the strategy as policies spell it.
func (s Strategy) String() string {
	return [...]string{"atomic", "merge", "patch"}[s]
}

// ParseStrategy reads a strategy as policies spell it.
func ParseStrategy(text string) (Strategy, bool) {
	i := slices.Index([]string{"atomic", "merge", "patch"}, text)
	return Strategy(max(i, 0)), i >= 0 //nolint:gosec // 0 to 2
}

// Rule is the smallest piece of a policy that wins or loses whole.
type Rule struct {
	Key Key
	// Value is decoded JSON: nil, bool, int64, float64, string, []any or
	// map[string]any; or Packed. It is never edited, and shared freely.
	Value any
	// Hollow marks an empty map in a kind whose rules are leaves: it holds its
	// place and replaces nothing.
	EmptyMap bool
}

// Condition decides whether a block takes part (`when`).
type Condition interface {
	// Evaluate answers for the effective spec as it is at that moment. Its values
	// may be Packed; one that is unpacked may be put in its place.
	Evaluate(spec map[string]any) Answer
	// String returns the expression.
	String() string
}

// Answer is what a condition says of a spec. The zero Answer is "not met".
type Answer struct {
	Met bool
	// Missing is the address of a key, from the spec's top (without "spec."),
	// that the expression names and the spec lacks. The condition is not met.
	Missing string
	// Neighbours tells that the map that lacks Missing holds other keys.
	HasSiblings bool
	// Err is any other failure to evaluate.
	Err error
	// Cost in the units of the condition's own limit.
	Cost uint64
}

// Rules is one block of a policy.
type Rules struct {
	Block    Block
	Strategy Strategy
	// When is nil for a block that always takes part.
	When Condition
	// Rules are sorted by key, each key once, and none lies below another one
	// unless that is hollow.
	Rules []Rule
}

// At returns the rule of a key, or nil.
func (b *Rules) At(k Key) *Rule {
	i, ok := slices.BinarySearchFunc(b.Rules, k, func(r Rule, k Key) int { return r.Key.Compare(k) })
	if !ok {
		return nil
	}
	return &b.Rules[i]
}

// Newest is the creation time of a policy that has none: it counts as newer
// than any other.
const Newest int64 = math.MaxInt64

// Policy is one policy, read.
type Policy struct {
	Namespace, Name string
	// Rank is the kind's own order on one level, before age: lower is higher.
	Rank int
	// Created is in seconds since 1970, or Newest.
	Created int64
	// Blocks are applied in the order of their Block values, the object's own
	// field first, however they are ordered here.
	Blocks []Rules
	// Unset takes rules out of the defaults of higher policies.
	Unset []Name
}

// Empty reports whether the policy has no rule.
func (p *Policy) Empty() bool {
	return !slices.ContainsFunc(p.Blocks, func(b Rules) bool { return len(b.Rules) > 0 })
}

// Name is one entry of an unset list: a rule key, a prefix of keys, or the
// bare name of a rule.
type Name struct{ key Key }

// ParseName reads an entry of an unset list.
func ParseName(text string) (Name, error) {
	k, err := ParseKey(text)
	if err != nil {
		return Name{}, err
	}
	return Name{key: k}, nil
}

// String returns the name as ParseName reads it.
func (n Name) String() string { return n.key.String() }

// Matches reports whether the name means the rule of that key.
func (n Name) Matches(k Key) bool {
	return n.key.Holds(k) || n.key.path == k.name()
}

// Names is an unset list made ready to be asked about many rules: a question
// costs what a key is deep, however long the list is.
type Names struct {
	paths map[string]struct{} // of the keys; that of a bare name is its only segment
}

// NewNames returns the list.
func NewNames(list []Name) Names {
	paths := make(map[string]struct{}, len(list))
	for _, n := range list {
		paths[n.key.path] = struct{}{}
	}
	return Names{paths}
}

// Match reports whether some name of the list means the rule of that key.
func (n Names) Match(k Key) bool {
	for path := range k.prefixesAndName {
		if _, ok := n.paths[path]; ok {
			return true
		}
	}
	return false
}

// named yields the paths of the names that mean the rule of a key: those of
// the keys that hold it, and that of its bare name.
func (k Key) prefixesAndName(yield func(path string) bool) {
	for i := range len(k.path) {
		if k.path[i] == 0 && !yield(k.path[:i+1]) {
			return
		}
	}
	yield(k.name())
}
