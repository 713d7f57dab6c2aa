package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindPolicyProfile is the kind of PolicyProfile.
const KindPolicyProfile = "PolicyProfile"

// PolicyProfile defines how policies of a kind are read and merged: the fields of
// their targets, blocks and rules, and how several policies are combined. It
// replaces the built-in profile of its kind.
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

// PolicyProfileStatus is the status of a profile.
//
// +kubebuilder:object:generate=true
type PolicyProfileStatus struct {
	// Conditions contains a condition of type Accepted. It is false with the reason
	// Invalid, or Conflicted if an older profile applies to the kind.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionAccepted is the condition type of profiles and constraints.
const ConditionAccepted = "Accepted"

// PolicyProfileSpec defines how policies of one kind are read and merged.
//
// Field paths are dotted (rules.authentication) and relative to the policy's spec
// unless stated otherwise; * matches any segment. A segment with characters other
// than letters, digits, "_" and "-" is written as ["…"].
//
// +kubebuilder:validation:XValidation:rule="self.group.contains('.') && (!self.group.endsWith('.k8s.io') || self.group.endsWith('.networking.k8s.io'))",message="group must be that of a CustomResourceDefinition, not one of Kubernetes' own"
// +kubebuilder:validation:XValidation:rule="self.group != 'gateway.networking.k8s.io' || !(self.kind in ['GatewayClass','Gateway','ListenerSet','ReferenceGrant','HTTPRoute','GRPCRoute','TLSRoute','TCPRoute','UDPRoute'])",message="kind is one that policies are attached to, not a policy kind"
// +kubebuilder:validation:XValidation:rule="self.class != 'direct' || !has(self.blocks) || (!has(self.blocks.defaults) && !has(self.blocks.overrides))",message="a direct kind has no defaults and overrides: set class to inherited or leave out blocks"
// +kubebuilder:object:generate=true
type PolicyProfileSpec struct {
	// Group is the API group of the policies.
	//
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// Kind is the kind of the policies.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Class is inherited if policies apply to the levels below their target, or
	// direct if they apply to the target only.
	Class ProfileClass `json:"class"`

	// Controllers lists the controllers whose gateways read policies of the kind, as the
	// controllerName of a GatewayClass or a start of it followed by *. On the gateways of
	// a controller of another known implementation, policies of the kind have no effect.
	// If empty, they have an effect on all gateways.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^*]+\*?$`
	// +listType=atomic
	// +optional
	Controllers []string `json:"controllers,omitempty"`
	// Levels lists the levels of the hierarchy at which policies may be attached,
	// from the root to the leaf. Backend may be before Route: policies on a route are then
	// more specific than those on its backends. Paths end at the last of them that they
	// have. It defaults to GatewayClass, Gateway, ListenerSet, Listener, Route, Rule.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(l, self.exists_one(m, m == l))",message="levels must be unique"
	// +listType=atomic
	// +optional
	Levels []LevelName `json:"levels,omitempty"`
	// ShortPaths ends the path of a rule without backends at the rule, in kinds
	// whose paths end at the backend. If false, such a rule has no path.
	//
	// +optional
	ShortPaths bool `json:"shortPaths,omitempty"`
	// Routes lists the kinds of routes that paths go through. It defaults to those among the
	// kinds that may be targeted, and without any to all.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Routes []string `json:"routes,omitempty"`

	// Targets defines the fields of the target references and the allowed targets.
	//
	// +optional
	Targets ProfileTargets `json:"targets,omitzero"`
	// Attachment defines the references by which other objects attach a policy to
	// themselves, besides the targets of the policy.
	//
	// +optional
	Attachment ProfileAttachment `json:"attachment,omitzero"`

	// Waypoints defines which gateways are waypoints of Services, in a mesh in which only
	// waypoints read policies on Services. If empty, policies on a Service have an effect
	// without one. It requires one of the levels ServiceNamespace and Service, and none
	// of RouteNamespace, Route, Rule and Backend.
	//
	// +optional
	Waypoints *ProfileWaypoints `json:"waypoints,omitempty"`

	// Content is the field with the policy's content, if it is not spec itself. Rule
	// keys and the fields of blocks are relative to it. With a . it is the object without
	// apiVersion, kind, metadata and status: policies have no spec, and field paths are
	// relative to the object.
	//
	// +optional
	Content string `json:"content,omitempty"`
	// Named makes the content one rule, whose key is the value of a field.
	//
	// +optional
	Named *NamedContent `json:"named,omitempty"`
	// Variants lists fields of the content that are read under another name if a field in
	// them has a value, so that they do not replace those without it.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Variants []ContentVariant `json:"variants,omitempty"`
	// RouteContents defines where a policy has other content for single routes.
	//
	// +optional
	RouteContents *RouteContents `json:"routeContents,omitempty"`
	// Ports is the path of a list, one of lists, whose items are for the listeners on the port
	// that is their key.
	//
	// +optional
	Ports string `json:"ports,omitempty"`
	// Directions defines the lists with items for one direction of the traffic.
	//
	// +optional
	Directions *ContentDirections `json:"directions,omitempty"`
	// Ignore lists the fields of the content that are not part of the policy.
	//
	// +listType=atomic
	// +optional
	Ignore []string `json:"ignore,omitempty"`
	// IgnoreOn lists the rules that have no effect on some paths.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	IgnoreOn []IgnoredRules `json:"ignoreOn,omitempty"`
	// Blocks defines the fields with the defaults and overrides. If empty, the whole
	// content is bare rules.
	//
	// +optional
	Blocks ProfileBlocks `json:"blocks,omitzero"`
	// Strategy defines how blocks are merged with those of other levels.
	//
	// +optional
	Strategy ProfileStrategy `json:"strategy,omitzero"`
	// Unset lists the fields that contain lists of rules to remove from the defaults
	// of higher policies.
	//
	// +listType=atomic
	// +optional
	Unset []string `json:"unset,omitempty"`

	// Rules lists the field paths of the kind's named rules. A field that is on none
	// of them is a rule at the level at which it branches off. If empty, each
	// top-level field is a rule. In kinds that allow patch, each leaf is a rule
	// instead.
	//
	// +listType=atomic
	// +optional
	Rules []string `json:"rules,omitempty"`
	// FalseIsUnset lists the rules whose value false has no effect, as if they were not set.
	//
	// +listType=atomic
	// +optional
	FalseIsUnset []string `json:"falseIsUnset,omitempty"`
	// Whole lists the maps that are merged as one value, in kinds that allow patch.
	//
	// +listType=atomic
	// +optional
	Whole []string `json:"whole,omitempty"`
	// Lists lists the lists whose items are identified by a key and merged item by
	// item, in kinds that allow patch. Other lists are merged as one value.
	//
	// +listType=atomic
	// +optional
	Lists []KeyedList `json:"lists,omitempty"`
	// Groups lists the groups of rules that exclude each other, or that several policies
	// set side by side.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Groups []RuleGroup `json:"groups,omitempty"`
	// JoinedLevels lists the levels that count as one, such as [[Route, Rule]]: for groups
	// with one, and in kinds whose lower policy determines the strategy. Of the policies on
	// joined levels, the lowest is merged with those above and replaces the others. With
	// Rule and Backend, the policies on a backend of a rule are on all of its backends.
	//
	// +listType=atomic
	// +optional
	JoinedLevels [][]LevelName `json:"joinedLevels,omitempty"`
	// JoinedWithTLS lists levels that count as one on the paths of listeners with TLS.
	//
	// +listType=atomic
	// +optional
	JoinedWithTLS []LevelName `json:"joinedWithTLS,omitempty"`

	// SameTarget defines how several policies on one target are combined. It
	// defaults to hierarchical for inherited kinds, and to none for direct ones.
	//
	// +optional
	SameTarget SameTarget `json:"sameTarget,omitempty"`
	// Ageless is set for kinds whose implementation does not consider the age of policies:
	// the first by namespace and name takes the place of the oldest.
	//
	// +optional
	Ageless bool `json:"ageless,omitempty"`
	// Order defines the order of the policies on one level. Policies that are equal
	// by it are ordered by age.
	//
	// +optional
	Order *ProfileOrder `json:"order,omitempty"`

	// Fields lists the fields of a route that the policies control. The route's own
	// value is the lowest layer.
	//
	// +listType=atomic
	// +optional
	Fields []RouteField `json:"fields,omitempty"`

	// Gates lists the rules that decide whether the other rules of the policy have
	// an effect, such as a top-level "when" that is evaluated for each request.
	//
	// +listType=atomic
	// +optional
	Gates []string `json:"gates,omitempty"`
	// Alternatives lists groups of rules of which one is sufficient, such as several
	// authentication methods: an additional one weakens the others.
	//
	// +listType=atomic
	// +optional
	Alternatives []string `json:"alternatives,omitempty"`

	// Protection lists the groups of rules that protect routes, such as authentication.
	// A path on which a policy has rules of a group and no rule of it is in effect is
	// marked in the output. Each group of alternatives is such a group, too.
	//
	// +listType=atomic
	// +optional
	Protection []ProtectionGroup `json:"protection,omitempty"`

	// Binding defines the rules that bind by triggers to certain rules of a route.
	// If empty, every rule applies wherever its policy does.
	//
	// +optional
	Binding *RuleBinding `json:"binding,omitempty"`

	// RouteOverridesBind defines which writes of routes, ListenerSets and Namespaces are bound
	// by an override that is attached to a route, the namespace of a route, a rule or a
	// backend: those in its namespace or above it, or all. A write that is not bound gets
	// a warning if the override no longer holds for some requests. It defaults to
	// SameNamespace. AllNamespaces lets users of one namespace prevent those of other
	// namespaces from taking requests, such as those of a more specific hostname.
	//
	// +optional
	RouteOverridesBind BoundNamespaces `json:"routeOverridesBind,omitempty"`

	// BlastRadius is the maximum number of paths whose effective policy one write
	// may change without acknowledgement. It takes precedence over the limit of the
	// server. 0 means no limit.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	BlastRadius *int32 `json:"blastRadius,omitempty"`

	// Actions sets the action for reason codes, for policies of this kind.
	//
	// +optional
	Actions map[ReasonCode]Action `json:"actions,omitempty"`
}

// BoundNamespaces is the namespaces in which the writes of routes are bound by an
// override on a route.
//
// +kubebuilder:validation:Enum=SameNamespace;AllNamespaces
type BoundNamespaces string

// The values of BoundNamespaces (docs/semantics.md, Which rule serves a request).
const (
	// BoundSameNamespace is the namespace of the route that has the override.
	BoundSameNamespace BoundNamespaces = "SameNamespace"
	// BoundAllNamespaces is all namespaces.
	BoundAllNamespaces BoundNamespaces = "AllNamespaces"
)

// ProfileClass is inherited for kinds whose policies apply to the levels below their
// target, and direct for kinds whose policies apply to the target only.
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

// The levels, the root first (docs/semantics.md, Paths). A path has either those
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

// NamedContent is content that is one rule. Policies set rules of different names side by side.
//
// +kubebuilder:object:generate=true
type NamedContent struct {
	// Field is the field of the content whose value is the key of the rule. It is not part
	// of its value.
	//
	// +kubebuilder:validation:MinLength=1
	Field string `json:"field"`
	// Disabled is a field of the content, and true in policies that have no effect.
	//
	// +optional
	Disabled string `json:"disabled,omitempty"`
}

// ContentVariant is a field of the content that has another name by the value of a field.
//
// +kubebuilder:object:generate=true
type ContentVariant struct {
	// Name of the field of the content.
	Name string `json:"name"`
	// Field is the field in it, and Value the value of it.
	Field string `json:"field"`
	Value string `json:"value"`
	// As is the name under which it is read.
	As string `json:"as"`
}

// RouteContents is a list with content for single routes. On the paths of a route, the
// rules of the item that identifies it most closely, the first of several, take the place
// of those of the content.
//
// +kubebuilder:object:generate=true
type RouteContents struct {
	// Field is the field of spec with the list.
	//
	// +kubebuilder:validation:MinLength=1
	Field string `json:"field"`
	// Route is the field of an item that identifies routes: {kind, namespace, name}. Without
	// a name it identifies all routes of the kind in the namespace, without a namespace all
	// of the kind.
	//
	// +kubebuilder:validation:MinLength=1
	Route string `json:"route"`
	// Content is the field of an item with the content.
	//
	// +kubebuilder:validation:MinLength=1
	Content string `json:"content"`
}

// IgnoredRules is rules that have no effect on some paths. Exactly one of route, where and
// beside must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.route), has(self.where), has(self.beside)].exists_one(x, x)",message="set one of route, where and beside"
// +kubebuilder:object:generate=true
type IgnoredRules struct {
	// Rules lists the field paths of the rules.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Rules []string `json:"rules"`
	// Route is the kind of the routes on whose paths they have no effect, nor on listeners
	// for such routes.
	//
	// +optional
	Route string `json:"route,omitempty"`
	// Refused is set if a policy on such a route has no effect there if it sets one of them,
	// itself or by the policy that it is merged with.
	//
	// +optional
	Refused bool `json:"refused,omitempty"`
	// Where is where they have no effect: in all policies of a path on which several are
	// (Merged), or one has an item for the port of the listener (PortItem); in a policy on
	// the listener itself (Listener), or in all others (AboveListener); on a rule of a route
	// without backends, such as a redirect (NoBackends).
	//
	// +optional
	Where IgnoredWhere `json:"where,omitempty"`
	// Beside is another kind of policies, as KIND.GROUP: they have no effect on a backend that
	// has one.
	//
	// +optional
	Beside string `json:"beside,omitempty"`
	// Target is the kind of the target of the policies of which this is so. If empty, it is
	// so of all.
	//
	// +optional
	Target string `json:"target,omitempty"`
}

// IgnoredWhere is where rules have no effect.
//
// +kubebuilder:validation:Enum=Merged;PortItem;Listener;AboveListener;NoBackends
type IgnoredWhere string

// The values of IgnoredWhere.
const (
	IgnoredMerged        IgnoredWhere = "Merged"
	IgnoredPortItem      IgnoredWhere = "PortItem"
	IgnoredListener      IgnoredWhere = "Listener"
	IgnoredAboveListener IgnoredWhere = "AboveListener"
	IgnoredNoBackends    IgnoredWhere = "NoBackends"
)

// ContentDirections defines lists with items for one direction of the traffic: on a path,
// those for the other one are left out.
//
// +kubebuilder:object:generate=true
type ContentDirections struct {
	// Lists lists the paths of the lists.
	//
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Lists []string `json:"lists"`
	// Field is the field of an item with the direction. It is not part of the rules.
	//
	// +kubebuilder:validation:MinLength=1
	Field string `json:"field"`
	// Gateway is the direction of the traffic at gateways, and Waypoint at waypoints. Items
	// with another value, or without one, are for both.
	//
	// +kubebuilder:validation:MinLength=1
	Gateway string `json:"gateway"`
	// +kubebuilder:validation:MinLength=1
	Waypoint string `json:"waypoint"`
}

// RouteField is a field of a route that a rule of the policy controls.
//
// +kubebuilder:object:generate=true
type RouteField struct {
	// Rule is the key of the rule.
	Rule string `json:"rule"`
	// Route is the path of the field in the route. [*] after a list matches each
	// item; in spec.rules it matches only the rule on the path. A list without [*]
	// stands for its first item that has the field. Of several fields of a rule,
	// the first that is set counts.
	//
	// +kubebuilder:validation:Pattern=`^spec\..+`
	Route string `json:"route"`
	// Unless is the path of a field of the route beside which this one does not count.
	//
	// +kubebuilder:validation:Pattern=`^spec\..+`
	// +optional
	Unless string `json:"unless,omitempty"`
	// Kinds lists the kinds of routes that have the field. It defaults to HTTPRoute.
	//
	// +listType=atomic
	// +optional
	Kinds []string `json:"kinds,omitempty"`
}

// ProtectionGroup is a group of rules that protect routes.
//
// +kubebuilder:object:generate=true
type ProtectionGroup struct {
	// Name is the name of the group in output, such as authentication.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Rules lists the field paths of the rules of the group.
	//
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Rules []string `json:"rules"`
}

// RuleBinding defines the rules of a kind that bind to rules of routes by their
// triggers, as the limits of Kuadrant's RFC "RateLimitPolicy v2" do. If several match
// a rule of a route, the first by name is bound to it.
//
// +kubebuilder:object:generate=true
type RuleBinding struct {
	// Rules is the field path of these rules, one of spec.rules, such as limits.*.
	//
	// +kubebuilder:validation:MinLength=1
	Rules string `json:"rules"`
	// Version is the API version of the kind in which rules have triggers. A policy
	// of another version may have been stored from this one: those of its rules bind
	// that have the format of this version.
	//
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
}

// Action is what is done about a finding: deny the write, return a warning, or only
// record it.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type Action string

// The actions.
const (
	Deny  Action = "Deny"
	Warn  Action = "Warn"
	Audit Action = "Audit"
)
