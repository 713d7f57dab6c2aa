// Package policykind knows how to read the kinds of policies: a profile says
// where a kind's targets, blocks and rules are, and Read makes values of them
// that the engine folds.
package policykind

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// Profile says how to read and merge a kind of policies. It is data: a kind
// that nobody thought of needs a profile and no code.
type Profile struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Class Class  `json:"class"`
	// Targets says where the target references are and what they may name.
	Targets Targets `json:"targets"`
	Blocks  Blocks  `json:"blocks,omitzero"`
	// Unset names the fields of spec that hold lists of rules to take out of
	// the defaults of higher policies.
	Unset []string `json:"unset,omitempty"`
	// Rules are the addresses of the kind's named rules, with * for any
	// segment. What none of them reaches is a rule at the place where it
	// leaves them; without any, each top-level field is a rule.
	Rules []string `json:"rules,omitempty"`
	// Whole names maps that are one value, in kinds that allow patch.
	Whole []string `json:"whole,omitempty"`
	// SameTarget says how policies on one target meet. Empty means
	// hierarchical for inherited kinds and none for direct ones.
	SameTarget SameTarget `json:"sameTarget,omitempty"`
	// Actions change what a reason does, for this kind.
	Actions map[api.ReasonCode]Action `json:"actions,omitempty"`
}

// Class tells kinds that are inherited down the hierarchy from direct ones.
type Class string

// The classes of policy kinds.
const (
	Inherited Class = "inherited"
	Direct    Class = "direct"
)

// SameTarget is how the policies of one target meet (SEMANTICS section 5).
type SameTarget string

// The ways in which the policies of one target meet.
const (
	// Hierarchical: the older is higher, then the blocks decide.
	Hierarchical SameTarget = "hierarchical"
	// None: the oldest is accepted, the others are Conflicted.
	None SameTarget = "none"
)

// Action is what happens for a reason.
type Action string

// The actions.
const (
	Deny  Action = "Deny"
	Warn  Action = "Warn"
	Audit Action = "Audit"
)

// Targets says where the target references of a kind are.
type Targets struct {
	// Fields of spec that hold one reference or a list of them.
	Fields []string `json:"fields"`
	// Kinds that may be targeted. Empty: any that the hierarchy knows.
	Kinds []api.PolicyKind `json:"kinds,omitempty"`
}

// Blocks says where the blocks of a kind are.
type Blocks struct {
	// Defaults and Overrides are the fields of spec that hold such a block,
	// in all their spellings.
	Defaults  []string `json:"defaults,omitempty"`
	Overrides []string `json:"overrides,omitempty"`
	Strategy  Strategy `json:"strategy,omitzero"`
	// When is the field of a block that holds its condition if it is a string.
	When string `json:"when,omitempty"`
}

// Strategy says how a kind spells the strategy of its blocks.
type Strategy struct {
	// Field of a block, and BareField of spec for the bare rules.
	Field     string `json:"field,omitempty"`
	BareField string `json:"bareField,omitempty"`
	// Allowed strategies; the first is the default. Empty: atomic alone.
	Allowed []string `json:"allowed,omitempty"`
}
