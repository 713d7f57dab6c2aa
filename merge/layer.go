package merge

import (
	"cmp"
	"strings"
)

// Layer is a policy at a level of a path. A policy that reaches a path at two
// levels is two layers with the same Policy.
type Layer struct {
	*Policy
	// Level of the policy's target on the path: 0 at the root, more is lower.
	Level int
	// As is how the bare block of the policy is applied on this path, instead
	// of as it says. Nil for most.
	As *Reading
	// Meet is how the policy meets others on the same level.
	Meet Meet
}

// Reading is how a block is applied.
type Reading struct {
	// Block is what it acts as: Bare, Defaults or Overrides.
	Block    Block
	Strategy Strategy
	// By is a lower policy without a rule that replaces this one: nothing of the
	// block survives. Nil for most.
	By *Policy
}

// Meet is how policies on one level, that is, on one target, meet (SEMANTICS
// section 5, sameTarget). Neighbours on a level that meet in the same way other
// than hierarchically are applied together; their unset lists act on the
// policies above all of them.
type Meet uint8

const (
	// MeetHierarchical applies them one after another, as those of different
	// levels.
	MeetHierarchical Meet = iota
	// MeetOldestWins applies their defaults and bare blocks, the highest
	// policy first, and then their overrides, the lowest first: the highest
	// wins among either, and an override beats every default.
	MeetOldestWins
	// MeetCollect applies them side by side: an atomic block takes or leaves
	// what was there before any of them, and never one of them.
	MeetCollect
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
// namespace/name. Layers of one policy on one level are told apart by how they
// are applied.
func Compare(a, b Layer) int {
	if c := cmp.Compare(a.Level, b.Level); c != 0 {
		return c // as most do
	}
	return cmp.Or(
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.Created, b.Created),
		compareNames(a.Policy, b.Policy),
		compareReadings(a.As, b.As),
		cmp.Compare(a.Meet, b.Meet),
	)
}

// compareNames orders by "namespace/name" as one text.
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
