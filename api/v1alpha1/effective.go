package v1alpha1

// Kinds of the lists.
const (
	KindEffectivePolicyList = "EffectivePolicyList"
	KindExplanationList     = "ExplanationList"
	KindOutcomeList         = "OutcomeList"
	KindChangeList          = "ChangeList"
	KindVerdictList         = "VerdictList"
)

// TypeMeta is the apiVersion and kind of a document.
type TypeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// EffectivePolicyList is the output of the command effective.
type EffectivePolicyList struct {
	TypeMeta `json:",inline"`
	Items    []EffectivePolicy `json:"items"`
	Outcomes []Outcome         `json:"outcomes"`
	// Request is where the request goes to whose paths the list is limited.
	Request *ServedRequest `json:"request,omitempty"`
	// Message is why named policies are on no path, why no policy applies to the
	// named object, or which policies hold above a route.
	Message string `json:"message,omitempty"`
}

// EffectivePolicy is the effective policy of one kind on one path.
type EffectivePolicy struct {
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	// Spec is the effective spec, an object; in kinds whose policies are collected
	// it is the list of their specs, in order.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec  any          `json:"spec"`
	Rules []RuleOrigin `json:"rules"`
	// Policies are those on the path, from the highest to the lowest.
	Policies []PolicyOnPath `json:"policies"`
	// Unprotected lists the rules that other policies replace and that belong to a group of
	// rules that protect, such as authentication, of which no rule is in effect.
	Unprotected []LostProtection `json:"unprotected,omitempty"`
	// Redacted is true if values are left out of the spec: those of the rules that are
	// marked so.
	Redacted bool `json:"redacted,omitempty"`
	// Route is the effective route of the path, in kinds that control fields of
	// routes.
	Route *EffectiveRoute `json:"route,omitempty"`
	// NotRead is the reason why policies of the kind have no effect on the path, such as a
	// gateway that does not read them, or a Service without a waypoint.
	NotRead string `json:"notRead,omitempty"`
}

// LostProtection are rules of a policy that protect and that another policy replaces.
type LostProtection struct {
	// Group is the name of the group, such as authentication.
	Group  string   `json:"group"`
	Rules  []string `json:"rules"`
	Policy Ref      `json:"policy"`
	To     Ref      `json:"to"`
}

// EffectiveRoute is a route with the fields that policies control.
type EffectiveRoute struct {
	// Fields are those that policies control, sorted by their path in the route.
	Fields []EffectiveField `json:"fields"`
	// Spec is the spec of the route with these values. Its only rule is that of the
	// path.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec map[string]any `json:"spec"`
	// Redacted is true if the spec is left out, because the reader is not allowed to
	// get the route.
	Redacted bool `json:"redacted,omitempty"`
}

// EffectiveField is a field of a route that policies control.
type EffectiveField struct {
	Field string `json:"field"`
	// Rule is the key of the rule that controls the field.
	Rule string `json:"rule"`
	// Value is the value in effect. It is absent if neither the route nor a policy
	// sets the field.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value any    `json:"value,omitempty"`
	From  *Ref   `json:"from,omitempty"`
	Block string `json:"block,omitempty"`
	// ConflictsWith lists the policy kinds that set the same field on the path to
	// another value. The value of a direct kind takes precedence.
	ConflictsWith []PolicyKind `json:"conflictsWith,omitempty"`
	// Redacted is true if the value is left out.
	Redacted bool `json:"redacted,omitempty"`
}

// RuleOrigin is a rule of the effective policy, with the policy and the block that it
// comes from.
type RuleOrigin struct {
	Rule  string `json:"rule"`
	From  Ref    `json:"from"`
	Block string `json:"block"`
	// Item is the index in the spec, from 0, in kinds whose spec is a list.
	Item *int `json:"item,omitempty"`
	// Value is the value of a rule with a key of its own, as in extAuth["app/login"], which
	// the spec has among others.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value any `json:"value,omitempty"`
	// Redacted is true if the value is left out of the spec, because the reader is not
	// allowed to get From.
	Redacted bool `json:"redacted,omitempty"`
}

// PolicyOnPath is the outcome of a policy on one path.
type PolicyOnPath struct {
	Policy Ref   `json:"policy"`
	State  State `json:"state"`
	// ReplacedBy is the policy that replaces it as a whole: its rules were lost
	// together, not one by one.
	ReplacedBy *Ref `json:"replacedBy,omitempty"`
	// Message is set for a policy without rules.
	Message string     `json:"message,omitempty"`
	Lost    []LostRule `json:"lost,omitempty"`
}

// LostRule is a rule that has no effect, with the policy and the block that replace
// it.
type LostRule struct {
	Rule    string `json:"rule"`
	Block   string `json:"block"`
	To      Ref    `json:"to"`
	ToBlock string `json:"toBlock"`
	// InForce is the policy in effect, if To has lost the rule to another policy.
	InForce *Ref `json:"inForce,omitempty"`
	// Equal is true if the effective rule has an equal value.
	Equal bool `json:"equal,omitempty"`
}

// OutcomeList is the output of the command outcome.
type OutcomeList struct {
	TypeMeta `json:",inline"`
	Items    []Outcome `json:"items"`
}

// Outcome is the outcome of a policy over all its paths.
type Outcome struct {
	Policy Ref   `json:"policy"`
	State  State `json:"state"`
	// Conditions are those that GEP-713 gives a policy of this state.
	Conditions []OutcomeCondition `json:"conditions,omitempty"`
	// Message is the reason for the states Invalid, Conflicted, TargetNotFound, NoPath and
	// Unreached. It is also set for a policy without rules, and for one that some gateways
	// do not read.
	Message string     `json:"message,omitempty"`
	Paths   PathCounts `json:"paths"`
	Targets []Target   `json:"targets"`
	// ReplacedBy lists the policies that replace it as a whole, with the number of
	// paths.
	ReplacedBy []PolicyCount `json:"replacedBy,omitempty"`
	// Lost lists the lost rules, with the number of paths on which each is lost to
	// that policy.
	Lost []LostCount `json:"lost,omitempty"`
	// Redacted is true if the reader is not allowed to get the policy: its targets and
	// the reason of its state are left out, and only the paths of the answer count.
	Redacted bool `json:"redacted,omitempty"`
}

// PathCounts is the number of paths that a policy is on, by its state there.
type PathCounts struct {
	Total             int `json:"total"`
	Enforced          int `json:"enforced"`
	PartiallyEnforced int `json:"partiallyEnforced"`
	Overridden        int `json:"overridden"`
	Inactive          int `json:"inactive"`
	// Unreached paths, which no request reaches, count in no other state.
	Unreached int `json:"unreached,omitempty"`
	// NotRead is the number of other paths, on which the policy is not read.
	NotRead int `json:"notRead,omitempty"`
}

// Target is a target of a policy, and whether it is accepted. Each object that a
// selector selects is a target; a selector that selects nothing is a target without
// a name.
type Target struct {
	Target   Ref    `json:"target"`
	Section  string `json:"section,omitempty"`
	Port     int32  `json:"port,omitempty"`
	Selector string `json:"selector,omitempty"`
	// AttachedBy is the reference by which the target attaches the policy to itself:
	// ExtensionRef, parametersRef or the name of an annotation. It is empty if the policy
	// names the target.
	AttachedBy string `json:"attachedBy,omitempty"`
	Accepted   bool   `json:"accepted"`
	// Reason is Conflicted, Invalid or TargetNotFound if the target is not accepted.
	Reason State `json:"reason,omitempty"`
	// Refused is the reason why the policy is not allowed to have this target.
	Refused string `json:"refused,omitempty"`
	// By is the policy that a Conflicted one conflicts with.
	By *Ref `json:"by,omitempty"`
}

// LostCount is a lost rule over all paths.
type LostCount struct {
	Rule string `json:"rule"`
	To   Ref    `json:"to"`
	// InForce and Equal are as in LostRule.
	InForce *Ref `json:"inForce,omitempty"`
	Equal   bool `json:"equal,omitempty"`
	Paths   int  `json:"paths"`
	// Whole is the number of these paths on which To replaces the policy as a whole.
	Whole int `json:"whole,omitempty"`
}

// PolicyCount is a policy with a number of paths.
type PolicyCount struct {
	Policy Ref `json:"policy"`
	Paths  int `json:"paths"`
}

// ExplanationList is the output of the command explain.
type ExplanationList struct {
	TypeMeta `json:",inline"`
	Items    []Explanation `json:"items"`
	// Request is as in EffectivePolicyList, with the candidates.
	Request *ServedRequest `json:"request,omitempty"`
	// Message is as in EffectivePolicyList.
	Message string `json:"message,omitempty"`
}

// Explanation lists, for one path and policy kind, what each policy contributes and
// loses.
type Explanation struct {
	PolicyKind PolicyKind      `json:"policyKind"`
	Path       []PathElement   `json:"path"`
	Policies   []Contribution  `json:"policies"`
	Rules      []ExplainedRule `json:"rules"`
	// Bindings lists which effective rules are bound to the rule of the route, in
	// kinds whose rules bind by triggers, in the order in which they bind.
	Bindings []Binding `json:"bindings,omitempty"`
	// Weakened lists rules of overrides that another policy weakens, by a gate or an
	// alternative.
	Weakened []WeakenedRule `json:"weakened,omitempty"`
	// Notes are about conditions that could not be evaluated or were skipped.
	Notes []string `json:"notes,omitempty"`
}

// Binding is whether a rule of the effective policy is bound to the rule of the route
// on the path.
type Binding struct {
	Rule  string `json:"rule"`
	From  Ref    `json:"from"`
	Block string `json:"block"`
	// State is Bound, Shadowed or Unmatched.
	State BindingState `json:"state"`
	// By lists the matches of the route's rule that the triggers select. It is
	// absent if the rule has no triggers and so matches every rule of a route.
	By []string `json:"by,omitempty"`
	// AlsoMatches lists the other matches of the route's rule, to whose requests the
	// rule also applies.
	AlsoMatches []string `json:"alsoMatches,omitempty"`
	// Hostnames lists the hostnames of the requests that the rule applies to.
	Hostnames []string `json:"hostnames,omitempty"`
	// ShadowedBy is the rule that is bound instead.
	ShadowedBy string `json:"shadowedBy,omitempty"`
	// Redacted is true if By, AlsoMatches or Hostnames are left out.
	Redacted bool `json:"redacted,omitempty"`
}

// BindingState is the state of a rule that binds by triggers.
type BindingState string

// The states of a binding.
const (
	BindingBound     BindingState = "Bound"
	BindingShadowed  BindingState = "Shadowed"
	BindingUnmatched BindingState = "Unmatched"
)

// WeakenedRule is a rule of an override that another policy weakens.
type WeakenedRule struct {
	Rule string `json:"rule"`
	// Policy is the policy with the override.
	Policy Ref `json:"policy"`
	// How is "gate" if ByRule decides whether the rule has an effect, or
	// "alternative" if ByRule is enough in its place.
	How    string `json:"how"`
	By     Ref    `json:"by"`
	ByRule string `json:"byRule"`
}

// Contribution is what one policy contributes to a path.
type Contribution struct {
	Policy Ref `json:"policy"`
	// Target is the element of the path at which the policy is attached.
	Target      PathElement     `json:"target"`
	State       State           `json:"state"`
	Blocks      []ExplainedPart `json:"blocks,omitempty"`
	Unset       []string        `json:"unset,omitempty"`
	Contributed []string        `json:"contributed,omitempty"`
	// ReplacedBy and Message are as in PolicyOnPath.
	ReplacedBy *Ref       `json:"replacedBy,omitempty"`
	Message    string     `json:"message,omitempty"`
	Lost       []LostRule `json:"lost,omitempty"`
}

// ExplainedPart is one block of a policy on a path.
type ExplainedPart struct {
	Block    string `json:"block"`
	Strategy string `json:"strategy"`
	// As lists the blocks that the bare rules acted as, if these are others.
	As       []string `json:"as,omitempty"`
	When     string   `json:"when,omitempty"`
	TookPart bool     `json:"tookPart"`
	Rules    []string `json:"rules"`
	// Redacted is true if the condition is left out.
	Redacted bool `json:"redacted,omitempty"`
}

// ExplainedRule is one rule key with its effective value and the values that it
// replaced.
type ExplainedRule struct {
	Rule string `json:"rule"`
	// Value is the value in effect. It is absent if no policy's value is.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value any        `json:"value,omitempty"`
	From  *Ref       `json:"from,omitempty"`
	Block string     `json:"block,omitempty"`
	Lost  []LostFrom `json:"lost,omitempty"`
	// Redacted is true if the value is left out.
	Redacted bool `json:"redacted,omitempty"`
}

// LostFrom is a value of a rule that a policy set and lost to another one.
type LostFrom struct {
	Policy Ref    `json:"policy"`
	Block  string `json:"block"`
	// Value is null if it is left out.
	//
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value   any    `json:"value"`
	To      Ref    `json:"to"`
	ToBlock string `json:"toBlock"`
	// InForce and Equal are as in LostRule.
	InForce *Ref `json:"inForce,omitempty"`
	Equal   bool `json:"equal,omitempty"`
	// Redacted is true if the value is left out.
	Redacted bool `json:"redacted,omitempty"`
}
