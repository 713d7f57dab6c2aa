package v1alpha1

// ProfileBlocks defines the fields of the blocks of a kind.
//
// +kubebuilder:object:generate=true
type ProfileBlocks struct {
	// Defaults lists the fields that contain a block of defaults.
	//
	// +listType=atomic
	// +optional
	Defaults []string `json:"defaults,omitempty"`
	// Overrides lists the fields that contain a block of overrides.
	//
	// +listType=atomic
	// +optional
	Overrides []string `json:"overrides,omitempty"`
	// When is the field of a block that contains its condition. Values other than
	// strings are ignored.
	//
	// +optional
	When string `json:"when,omitempty"`
	// Bare defines by the value of a field whether the bare rules are overrides or
	// defaults.
	//
	// +optional
	Bare *BareBlock `json:"bare,omitempty"`
}

// BareBlock defines by the value of a field whether bare rules are overrides.
//
// +kubebuilder:object:generate=true
type BareBlock struct {
	// Field is a field of the policy's spec.
	Field string `json:"field"`
	// Overrides lists the values that make the bare rules overrides. An empty one stands
	// for a policy that does not set the field.
	//
	// +listType=atomic
	Overrides []string `json:"overrides"`
	// Levels lists the levels at which they are overrides, and defaults at others. If
	// empty, they are overrides at all levels.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Levels []LevelName `json:"levels,omitempty"`
}

// ProfileStrategy defines how the blocks of a kind are merged with those of other
// levels.
//
// +kubebuilder:object:generate=true
type ProfileStrategy struct {
	// Allowed lists the allowed strategies; the first is the default. If empty,
	// only atomic is allowed.
	//
	// +listType=atomic
	// +optional
	Allowed []StrategyName `json:"allowed,omitempty"`
	// Field is the field of a block that contains its strategy.
	//
	// +optional
	Field string `json:"field,omitempty"`
	// BareField is the field that contains the strategy of the bare rules.
	//
	// +optional
	BareField string `json:"bareField,omitempty"`
	// Spellings maps the values of these fields to strategies. Without it, the values are the
	// names of the strategies.
	//
	// +optional
	Spellings map[string]StrategyName `json:"spellings,omitempty"`
	// By defines which of two policies determines the strategy: the higher one (the
	// default) or the lower one.
	//
	// +optional
	By StrategyBy `json:"by,omitempty"`
	// MergeOn lists kinds of routes on whose paths all policies are merged by their
	// top-level fields. It requires by: lower.
	//
	// +listType=atomic
	// +optional
	MergeOn []string `json:"mergeOn,omitempty"`
	// WholeLists lists the values of these fields with which a policy replaces lists whole:
	// neither lists nor the keys of groups apply to its rules.
	//
	// +listType=atomic
	// +optional
	WholeLists []string `json:"wholeLists,omitempty"`
}

// StrategyName is how a block is merged with the rules of other policies
// (docs/semantics.md, The fold).
//
// +kubebuilder:validation:Enum=atomic;merge;patch
type StrategyName string

// StrategyBy is which of two policies determines the strategy.
//
// +kubebuilder:validation:Enum=higher;lower
type StrategyBy string

// The values of StrategyBy.
const (
	StrategyByHigher StrategyBy = "higher"
	StrategyByLower  StrategyBy = "lower"
)

// KeyedList is a list whose items are identified by a field.
//
// +kubebuilder:object:generate=true
type KeyedList struct {
	// Path is the field path of the list.
	Path string `json:"path"`
	// Key is the path of the field of an item that identifies it. If empty, all items
	// have the default key, so a list of one item is merged as that item.
	//
	// +optional
	Key string `json:"key,omitempty"`
	// Default is the key of an item that does not have the field. If empty, the list
	// of such an item is merged as one value.
	//
	// +optional
	Default string `json:"default,omitempty"`
}

// RuleGroup is a group of rules that exclude each other, or that several policies set
// side by side.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) || has(self.one)",message="set key, one, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.disable) || has(self.key)",message="disable requires key"
// +kubebuilder:object:generate=true
type RuleGroup struct {
	// Rules lists the field paths of the rules. With key, each is a group of its own.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Rules []string `json:"rules"`
	// Key is the field of a rule with a reference, {name, namespace}: rules with
	// different references are in effect side by side. A . stands for the policy itself:
	// the rules of all policies are in effect side by side. An override removes the
	// rules of the group that lower policies set.
	//
	// +kubebuilder:validation:MinLength=1
	// +optional
	Key string `json:"key,omitempty"`
	// Disable is the field of a rule that removes the rules of the group that other
	// policies set, whatever their keys and their levels.
	//
	// +optional
	Disable string `json:"disable,omitempty"`
	// One defines which policies exclude each other if they set rules of the group,
	// whatever their keys. If empty, none do.
	//
	// +optional
	One OnePolicy `json:"one,omitempty"`
	// Agree is a field of a rule in which the policies on one level must agree: a rule with
	// another value than that of the first one is not in effect.
	//
	// +optional
	Agree *Agreement `json:"agree,omitempty"`
}

// Agreement is a field whose values exclude each other.
//
// +kubebuilder:object:generate=true
type Agreement struct {
	// Field is the field of the rule.
	//
	// +kubebuilder:validation:MinLength=1
	Field string `json:"field"`
	// Values lists its values. Rules without one of them agree with all.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:MinItems=2
	// +listType=atomic
	Values []string `json:"values"`
}

// OnePolicy is which policies exclude each other if they set rules of a group.
//
// +kubebuilder:validation:Enum=SameLevel;AllLevels;HighestLevel;Choice
type OnePolicy string

// The values of OnePolicy.
const (
	// OneSameLevel is the policies on the same level: the rules of the first one are in
	// effect.
	OneSameLevel OnePolicy = "SameLevel"
	// OneAllLevels is the policies on different levels: the rules of those on the lowest
	// level are in effect.
	OneAllLevels OnePolicy = "AllLevels"
	// OneHighestLevel is the policies on different levels: the rules of those on the highest
	// level are in effect.
	OneHighestLevel OnePolicy = "HighestLevel"
	// OneChoice is the policies that set rules at different field paths of the group: those
	// at the path that the lowest policy sets are in effect.
	OneChoice OnePolicy = "Choice"
)

// SameTarget is how several policies on one target are combined (docs/semantics.md,
// Two policies on one target).
//
// +kubebuilder:validation:Enum=hierarchical;oldestWins;none;alone;fieldConflict;collect
type SameTarget string

// The values of SameTarget.
const (
	// Hierarchical merges the policies as if the older ones were at higher levels.
	Hierarchical SameTarget = "hierarchical"
	// OldestWins applies all policies: their defaults and bare blocks oldest first,
	// then their overrides newest first.
	OldestWins SameTarget = "oldestWins"
	// None accepts the oldest policy; the others are Conflicted.
	None SameTarget = "none"
	// Alone accepts a policy that is the only one. Of several, the newer ones are
	// Conflicted, and the oldest has no effect either.
	Alone SameTarget = "alone"
	// FieldConflict accepts all policies except those with a rule key of an older
	// one, which are Conflicted.
	FieldConflict SameTarget = "fieldConflict"
	// Collect applies all policies as a list, without merging them.
	Collect SameTarget = "collect"
)

// ProfileOrder is the order of the policies of a kind.
//
// +kubebuilder:object:generate=true
type ProfileOrder struct {
	OrderKey `json:",inline"`

	// Then orders policies that are equal by the first key.
	//
	// +optional
	Then *OrderKey `json:"then,omitempty"`
	// AcrossLevels applies the order, and after it age, to the policies of all levels
	// together, in kinds whose sameTarget is collect. Between policies with the same place
	// in the order, those in the mesh's namespace are first.
	//
	// +optional
	AcrossLevels bool `json:"acrossLevels,omitempty"`
	// MeshLast is set if those in the mesh's namespace are last.
	//
	// +optional
	MeshLast bool `json:"meshLast,omitempty"`
	// Equal requires that all policies on a rule of a route, and on the route, have the
	// same place in the order: those on the route that differ have no effect.
	//
	// +optional
	Equal bool `json:"equal,omitempty"`
}

// OrderKey is a key by which policies are sorted. Exactly one of field and
// annotation must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.field) != has(self.annotation)",message="set one of field and annotation"
// +kubebuilder:object:generate=true
type OrderKey struct {
	// Field is a field of spec that contains a number, or one of values.
	//
	// +optional
	Field string `json:"field,omitempty"`
	// Annotation is an annotation of the policy that contains a number.
	//
	// +optional
	Annotation string `json:"annotation,omitempty"`
	// HighestFirst sorts by descending number. If false, the lowest number is first.
	//
	// +optional
	HighestFirst bool `json:"highestFirst,omitempty"`
	// Values lists the values of the field in order, if they are not numbers.
	//
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// Default is the number or value of a policy that does not set the key. If
	// empty, it is 0, or after all values.
	//
	// +optional
	Default string `json:"default,omitempty"`
}
