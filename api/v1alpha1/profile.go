package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindPolicyProfile is the kind of PolicyProfile.
const KindPolicyProfile = "PolicyProfile"

// PolicyProfile says how to read and merge a kind of policies: where its
// targets, blocks and rules are, and how two of them meet. A cluster's own
// profile of a kind replaces the one that comes with Overrule.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pprof
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.group`
// +kubebuilder:printcolumn:name="Policies",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:object:generate=true
type PolicyProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PolicyProfileSpec   `json:"spec"`
	Status PolicyProfileStatus `json:"status,omitempty"`
}

// PolicyProfileList is a list of profiles.
//
// +kubebuilder:object:root=true
// +kubebuilder:object:generate=true
type PolicyProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PolicyProfile `json:"items"`
}

// PolicyProfileStatus tells whether a profile is in force.
//
// +kubebuilder:object:generate=true
type PolicyProfileStatus struct {
	// Conditions hold one of type Accepted: true, or false with the reason
	// Invalid or Conflicted (an older profile has the kind).
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProfileAccepted is the type of a profile's condition.
const ProfileAccepted = "Accepted"

// PolicyProfileSpec is how to read and merge one kind.
//
// Addresses are dotted (rules.authentication), from the policy's spec unless
// said otherwise; * stands for any segment. A segment with other characters
// than letters, digits, "_" and "-" is written ["…"].
//
// +kubebuilder:validation:XValidation:rule="self.group.contains('.') && (!self.group.endsWith('.k8s.io') || self.group.endsWith('.networking.k8s.io'))",message="group must be that of a CustomResourceDefinition, not one of Kubernetes' own"
// +kubebuilder:validation:XValidation:rule="self.group != 'gateway.networking.k8s.io' || !(self.kind in ['GatewayClass','Gateway','ListenerSet','ReferenceGrant','HTTPRoute','GRPCRoute','TLSRoute','TCPRoute','UDPRoute'])",message="kind is one that policies are attached to, not a policy kind"
// +kubebuilder:validation:XValidation:rule="self.class != 'direct' || !has(self.blocks) || (!has(self.blocks.defaults) && !has(self.blocks.overrides))",message="a direct kind has no defaults and overrides: set class to inherited or leave out blocks"
// +kubebuilder:object:generate=true
type PolicyProfileSpec struct {
	// Group and Kind are those of the policies.
	//
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Class: inherited kinds flow down the hierarchy, direct ones do not.
	Class ProfileClass `json:"class"`

	// Levels of the hierarchy at which policies may stand, from the root to
	// the leaf, each once. Paths end at the last level that they have.
	// Empty: GatewayClass, Gateway, ListenerSet, Listener, Route, Rule.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(l, self.exists_one(m, m == l))",message="a level stands twice: name each once"
	// +listType=atomic
	// +optional
	Levels []LevelName `json:"levels,omitempty"`
	// ShortPaths lets the path of a rule without backends end at the rule, in
	// kinds whose paths end at the backend. Else such a rule has no path.
	//
	// +optional
	ShortPaths bool `json:"shortPaths,omitempty"`

	// Targets says where the target references are and what they may name.
	Targets ProfileTargets `json:"targets"`

	// Content is where the policy's content is, if not in spec itself. Rule
	// keys and the fields of blocks are relative to it.
	//
	// +optional
	Content string `json:"content,omitempty"`
	// Ignore names what of the content is no part of the policy.
	//
	// +listType=atomic
	// +optional
	Ignore []string `json:"ignore,omitempty"`
	// Blocks says where the defaults and overrides are. Without any the whole
	// content is bare.
	//
	// +optional
	Blocks ProfileBlocks `json:"blocks,omitzero"`
	// Strategy says how the blocks meet those of other levels.
	//
	// +optional
	Strategy ProfileStrategy `json:"strategy,omitzero"`
	// Unset names the fields that hold lists of rules to take out of the
	// defaults of higher policies.
	//
	// +listType=atomic
	// +optional
	Unset []string `json:"unset,omitempty"`

	// Rules are the addresses of the kind's named rules. What none of them
	// reaches is a rule at the place where it leaves them; without any, each
	// top-level field is a rule. Kinds that allow patch have their leaves as
	// rules instead.
	//
	// +listType=atomic
	// +optional
	Rules []string `json:"rules,omitempty"`
	// Whole names maps that are one value, in kinds that allow patch.
	//
	// +listType=atomic
	// +optional
	Whole []string `json:"whole,omitempty"`
	// Lists are those whose items are told apart by a key, and merged item by
	// item, in kinds that allow patch. Other lists are one value.
	//
	// +listType=atomic
	// +optional
	Lists []KeyedList `json:"lists,omitempty"`

	// SameTarget says how policies on one target meet. Empty: hierarchical
	// for inherited kinds, none for direct ones.
	//
	// +optional
	SameTarget SameTarget `json:"sameTarget,omitempty"`
	// Order is the kind's own order of the policies on one level, before
	// their age.
	//
	// +optional
	Order *ProfileOrder `json:"order,omitempty"`

	// Fields are those of a route that the policies control: the route's own
	// value is then the lowest layer.
	//
	// +listType=atomic
	// +optional
	Fields []RouteField `json:"fields,omitempty"`

	// Gates are rules that decide whether any other rule of the policy has an
	// effect, such as a top-level "when" that is asked of each request.
	//
	// +listType=atomic
	// +optional
	Gates []string `json:"gates,omitempty"`
	// Alternatives are groups of rules of which one is enough, such as several
	// ways to authenticate: one more of them weakens the others.
	//
	// +listType=atomic
	// +optional
	Alternatives []string `json:"alternatives,omitempty"`

	// Binding names the rules that bind to some rules of a route alone, by
	// triggers of their own. Empty: every rule holds wherever its policy does.
	//
	// +optional
	Binding *RuleBinding `json:"binding,omitempty"`

	// BlastRadius is the most paths whose effective policy one write may change
	// without having been acknowledged; it takes precedence over the server's
	// own limit. 0: no limit.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	BlastRadius *int32 `json:"blastRadius,omitempty"`

	// Actions change what a reason does, for policies of this kind.
	//
	// +optional
	Actions map[ReasonCode]Action `json:"actions,omitempty"`
}

// ProfileClass tells kinds that are inherited down the hierarchy from direct
// ones.
//
// +kubebuilder:validation:Enum=inherited;direct
type ProfileClass string

// The classes of policy kinds.
const (
	Inherited ProfileClass = "inherited"
	Direct    ProfileClass = "direct"
)

// LevelName is a level of the hierarchy.
//
// +kubebuilder:validation:Enum=Mesh;GatewayClass;GatewayNamespace;Gateway;ListenerSet;Listener;ServiceNamespace;Service;RouteNamespace;Route;Rule;Backend
type LevelName string

// The levels, the root first (SEMANTICS section 1). A path has either those
// from GatewayClass to Listener or, in a mesh, those of the Service that is
// its parent.
const (
	LevelMesh             LevelName = "Mesh"
	LevelGatewayClass     LevelName = "GatewayClass"
	LevelGatewayNamespace LevelName = "GatewayNamespace"
	LevelGateway          LevelName = "Gateway"
	LevelListenerSet      LevelName = "ListenerSet"
	LevelListener         LevelName = "Listener"
	LevelServiceNamespace LevelName = "ServiceNamespace"
	LevelService          LevelName = "Service"
	LevelRouteNamespace   LevelName = "RouteNamespace"
	LevelRoute            LevelName = "Route"
	LevelRule             LevelName = "Rule"
	LevelBackend          LevelName = "Backend"
)

// ProfileTargets says where the target references of a kind are.
//
// +kubebuilder:object:generate=true
type ProfileTargets struct {
	// Fields hold one reference or a list of them. A reference that has a
	// selector in place of a name selects by label.
	//
	// +listType=atomic
	// +optional
	Fields []string `json:"fields,omitempty"`
	// Selectors hold references that select by label: a list of {group, kind,
	// matchLabels, matchExpressions}.
	//
	// +listType=atomic
	// +optional
	Selectors []string `json:"selectors,omitempty"`
	// Workloads hold selectors of pods. Overrule does not read those: such a
	// policy is reported as one whose reach is not known.
	//
	// +listType=atomic
	// +optional
	Workloads []string `json:"workloads,omitempty"`
	// Kinds that may be targeted. Empty: any.
	//
	// +listType=atomic
	// +optional
	Kinds []TargetKind `json:"kinds,omitempty"`
	// Namespaces says whether a target may be in another namespace than its
	// policy, and on whose leave. Empty: own.
	//
	// +optional
	Namespaces NamespaceLeave `json:"namespaces,omitempty"`
	// ClassFrom are the namespaces whose policies may target a GatewayClass;
	// * stands for all. Policies without a namespace always may.
	//
	// +listType=atomic
	// +optional
	ClassFrom []string `json:"classFrom,omitempty"`
	// Implicit says what a policy without any target is attached to. Without
	// it, a policy needs a target.
	//
	// +optional
	Implicit *ImplicitTarget `json:"implicit,omitempty"`
}

// TargetKind is a kind that may be targeted.
//
// +kubebuilder:object:generate=true
type TargetKind struct {
	// Group of the kind, empty for Kubernetes' core; * for any group.
	Group string `json:"group"`
	// Kind, or * for any of the group.
	Kind string `json:"kind"`
	// Section is what a sectionName names there. Empty: the listener of a
	// Gateway or ListenerSet, the rule of a route, the port's name of a
	// Service.
	//
	// +optional
	Section SectionMeaning `json:"section,omitempty"`
	// Virtual kinds exist nowhere as objects: a target of one is never
	// missing, and is a path of its own.
	//
	// +optional
	Virtual bool `json:"virtual,omitempty"`
}

// SectionMeaning is what a target's sectionName names.
//
// +kubebuilder:validation:Enum=None;Listener;Rule;PortName;PortNumber
type SectionMeaning string

// The meanings of a section.
const (
	SectionNone       SectionMeaning = "None" // may not be set
	SectionListener   SectionMeaning = "Listener"
	SectionRule       SectionMeaning = "Rule"
	SectionPortName   SectionMeaning = "PortName"
	SectionPortNumber SectionMeaning = "PortNumber"
)

// NamespaceLeave says on whose leave a target may be in another namespace.
//
// +kubebuilder:validation:Enum=own;referenceGrant;consumer;free
type NamespaceLeave string

// The leaves (SEMANTICS section 5).
const (
	// LeaveOwn: a target is in the policy's own namespace.
	LeaveOwn NamespaceLeave = "own"
	// LeaveGrant: a ReferenceGrant in the target's namespace allows it.
	LeaveGrant NamespaceLeave = "referenceGrant"
	// LeaveConsumer: any, but only traffic from the policy's own namespace is
	// affected.
	LeaveConsumer NamespaceLeave = "consumer"
	// LeaveFree: any.
	LeaveFree NamespaceLeave = "free"
)

// ImplicitTarget is what a policy without any target is attached to: its
// namespace, or the mesh.
//
// +kubebuilder:object:generate=true
type ImplicitTarget struct {
	// MeshNamespace is the root namespace: a policy in it without a target is
	// attached to the whole mesh. In any other it is attached to the namespace.
	//
	// +optional
	MeshNamespace string `json:"meshNamespace,omitempty"`
}

// ProfileBlocks says where the blocks of a kind are.
//
// +kubebuilder:object:generate=true
type ProfileBlocks struct {
	// Defaults and Overrides are the fields that hold such a block, in all
	// their spellings.
	//
	// +listType=atomic
	// +optional
	Defaults []string `json:"defaults,omitempty"`
	// +listType=atomic
	// +optional
	Overrides []string `json:"overrides,omitempty"`
	// When is the field of a block that holds its condition, if it is a
	// string.
	//
	// +optional
	When string `json:"when,omitempty"`
	// Bare makes the bare rules overrides (or defaults) by the value of a
	// field.
	//
	// +optional
	Bare *BareBlock `json:"bare,omitempty"`
}

// BareBlock tells by the value of a field what the bare rules are.
//
// +kubebuilder:object:generate=true
type BareBlock struct {
	// Field of the policy's spec.
	Field string `json:"field"`
	// Overrides are the values that make the bare rules overrides.
	//
	// +listType=atomic
	Overrides []string `json:"overrides"`
}

// ProfileStrategy says how the blocks of a kind meet those of other levels.
//
// +kubebuilder:object:generate=true
type ProfileStrategy struct {
	// Allowed strategies; the first is the default. Empty: atomic alone.
	//
	// +listType=atomic
	// +optional
	Allowed []StrategyName `json:"allowed,omitempty"`
	// Field of a block, and BareField beside the bare rules, that says which.
	//
	// +optional
	Field string `json:"field,omitempty"`
	// +optional
	BareField string `json:"bareField,omitempty"`
	// Spellings are other words that the fields may hold.
	//
	// +optional
	Spellings map[string]StrategyName `json:"spellings,omitempty"`
	// By says who dictates the strategy where two levels meet: the higher
	// policy (the default) or the lower one.
	//
	// +optional
	By DictatedBy `json:"by,omitempty"`
	// Annotation of a route that dictates instead, on the paths through it.
	//
	// +optional
	Annotation *StrategyAnnotation `json:"annotation,omitempty"`
}

// StrategyName is how a block meets the rules that are there already
// (SEMANTICS section 3).
//
// +kubebuilder:validation:Enum=atomic;merge;patch
type StrategyName string

// DictatedBy says which of two policies dictates the strategy.
//
// +kubebuilder:validation:Enum=higher;lower
type DictatedBy string

// The two who can dictate.
const (
	ByHigher DictatedBy = "higher"
	ByLower  DictatedBy = "lower"
)

// StrategyAnnotation is an annotation of a route that says how the bare rules
// of the policies above the route are applied.
//
// +kubebuilder:object:generate=true
type StrategyAnnotation struct {
	// Name of the annotation.
	Name string `json:"name"`
	// Values of the annotation, and what they mean. Any other means nothing.
	Values map[string]StrategyReading `json:"values"`
}

// StrategyReading is how bare rules are applied.
//
// +kubebuilder:object:generate=true
type StrategyReading struct {
	Strategy StrategyName `json:"strategy"`
	// Overrides applies them as overrides, else they are defaults.
	//
	// +optional
	Overrides bool `json:"overrides,omitempty"`
}

// KeyedList is a list whose items are told apart by a field of theirs.
//
// +kubebuilder:object:generate=true
type KeyedList struct {
	// Path is the list's address.
	Path string `json:"path"`
	// Key is the field of an item.
	Key string `json:"key"`
}

// SameTarget is how the policies of one target meet (SEMANTICS section 5).
//
// +kubebuilder:validation:Enum=hierarchical;oldestWins;none;fieldConflict;collect
type SameTarget string

// The ways in which the policies of one target meet.
const (
	// Hierarchical: the older is higher, then the blocks decide.
	Hierarchical SameTarget = "hierarchical"
	// OldestWins: all apply together, their defaults and bare blocks oldest
	// first, then their overrides newest first.
	OldestWins SameTarget = "oldestWins"
	// None: the oldest is accepted, the others are Conflicted.
	None SameTarget = "none"
	// FieldConflict: as None, but only where their rule keys overlap.
	FieldConflict SameTarget = "fieldConflict"
	// Collect: all apply side by side, as a list.
	Collect SameTarget = "collect"
)

// ProfileOrder is a kind's own order.
//
// +kubebuilder:object:generate=true
type ProfileOrder struct {
	OrderKey `json:",inline"`

	// Then orders those that the first key has at the same place.
	//
	// +optional
	Then *OrderKey `json:"then,omitempty"`
	// AcrossLevels lets the order come before the levels, in kinds that
	// collect: the list is then in this order alone.
	//
	// +optional
	AcrossLevels bool `json:"acrossLevels,omitempty"`
}

// OrderKey is what policies are put in order by. Exactly one of Field and
// Annotation is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.field) != has(self.annotation)",message="set one of field and annotation"
// +kubebuilder:object:generate=true
type OrderKey struct {
	// Field of spec that holds a number, or one of Values.
	//
	// +optional
	Field string `json:"field,omitempty"`
	// Annotation of the policy that holds a number.
	//
	// +optional
	Annotation string `json:"annotation,omitempty"`
	// HighestFirst: the highest number comes first. Else the lowest does.
	//
	// +optional
	HighestFirst bool `json:"highestFirst,omitempty"`
	// Values of the field in their order, where it holds no number.
	//
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// Default is the number, or the value, of a policy that does not say.
	// Empty: 0, or behind all values.
	//
	// +optional
	Default string `json:"default,omitempty"`
}

// RouteField is a field of a route that a rule of the policy controls.
//
// +kubebuilder:object:generate=true
type RouteField struct {
	// Rule is the key of the rule.
	Rule string `json:"rule"`
	// Route is the address of the field in the route. [*] after a list stands
	// for each of its items; that of spec.rules is the path's own rule.
	//
	// +kubebuilder:validation:Pattern=`^spec\..+`
	Route string `json:"route"`
	// Kinds of routes that have the field. Empty: HTTPRoute.
	//
	// +listType=atomic
	// +optional
	Kinds []string `json:"kinds,omitempty"`
}

// RuleBinding names the rules of a kind that bind to rules of routes as the
// limits of Kuadrant's RFC "RateLimitPolicy v2" do: by the matches that their
// triggers state. Of several that match a rule the first by name is bound to it.
//
// +kubebuilder:object:generate=true
type RuleBinding struct {
	// Rules is the address of such rules, one of spec.rules: limits.*.
	//
	// +kubebuilder:validation:MinLength=1
	Rules string `json:"rules"`
	// Version of the kind's API whose policies write them so. In a policy of
	// another version, which may have been written in this one and stored in the
	// other, those rules bind that are written so.
	//
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
}

// Action is what happens for a reason.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type Action string

// The actions.
const (
	Deny  Action = "Deny"
	Warn  Action = "Warn"
	Audit Action = "Audit"
)
