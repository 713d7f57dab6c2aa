package merge

import (
	"cmp"
	"strings"
)

// Layer is a policy at a level of a path. A policy at two levels of a path has two
// layers with the same Policy.
type Layer struct {
	*Policy
	// Level of the policy's target on the path: 0 at the root, more is lower.
	Level int
	// Depth is the level in whose place the layer is ordered, if it is not its own: below
	// the others there. It is 0 for most.
	Depth int
	// Place orders policies of a level before any other order: the first is the highest.
	// It is 0 for most.
	Place int
	// Part is the part of the policy that is applied on this path, 0 for its Blocks and n
	// for the n-th of its Parts.
	Part int
	// Tier is the level, or a number that several levels have in common, for the rules
	// that exclude others by their Group.
	Tier int
	// As overrides how the bare block of the policy is applied on this path. Nil for
	// most.
	As *Reading
	// SameTarget is how the policy is combined with others on the same level.
	SameTarget SameTarget
}

// Beside reports whether two layers of a path are on the same target.
func (l *Layer) Beside(o *Layer) bool { return l.Level == o.Level && l.Depth == o.Depth }

// Reading is how a block is applied.
type Reading struct {
	// Block is what it acts as: Bare, Defaults or Overrides.
	Block    Block
	Strategy Strategy
	// By is a lower policy that replaces this one, whatever its rules are: all rules of
	// the block are lost. Nil for most.
	By *Policy
}

// SameTarget is how policies on the same level, that is, on the same target, are combined
// (SEMANTICS section 5, sameTarget). Adjacent policies of a level with the same SameTarget
// other than SameTargetHierarchical are applied as a group; their unset lists apply to the
// policies above the group.
type SameTarget uint8

const (
	// SameTargetHierarchical applies them one after another, like those of different
	// levels.
	SameTargetHierarchical SameTarget = iota
	// SameTargetOldestWins applies their defaults and bare blocks, the highest
	// policy first, and then their overrides, the lowest first: the highest
	// wins among either, and an override beats every default.
	SameTargetOldestWins
	// SameTargetCollect applies them independently: an atomic block replaces, or yields to,
	// the rules from before the group, never those of the group.
	SameTargetCollect
)

// Reading returns how a block of the layer's policy is applied.
func (l *Layer) Reading(b *Rules) Reading {
	if l.As != nil && b.Block == Bare {
		return *l.As
	}
	return Reading{Block: b.Block, Strategy: b.Strategy}
}

// Compare orders layers from the highest to the lowest (SEMANTICS section 2):
// by level, then by the kind's own order, then the older first, then by
// namespace/name. Layers of the same policy on the same level are ordered by how
// they are applied.
func Compare(a, b Layer) int {
	if c := cmp.Compare(cmp.Or(a.Depth, a.Level), cmp.Or(b.Depth, b.Level)); c != 0 {
		return c // the common case
	}
	return cmp.Or(
		cmp.Compare(a.Level, b.Level),
		cmp.Compare(a.Place, b.Place),
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.Created, b.Created),
		compareNames(a.Policy, b.Policy),
		cmp.Compare(a.Part, b.Part),
		compareReadings(a.As, b.As),
		cmp.Compare(a.SameTarget, b.SameTarget),
	)
}

// compareNames orders by "namespace/name" as one string.
func compareNames(a, b *Policy) int {
	if a.Namespace == b.Namespace {
		return strings.Compare(a.Name, b.Name)
	}
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
}

// compareReadings orders readings, none first.
func compareReadings(a, b *Reading) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Strategy, b.Strategy), compareReplacers(a.By, b.By))
}

// compareReplacers orders policies by name, none first.
func compareReplacers(a, b *Policy) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return compareNames(a, b)
	}
}
