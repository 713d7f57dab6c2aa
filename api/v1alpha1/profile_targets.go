package v1alpha1

// ProfileTargets defines the target references of a kind.
//
// +kubebuilder:object:generate=true
type ProfileTargets struct {
	// Fields lists the fields that contain one reference or a list of references. A
	// reference with a selector instead of a name selects objects by label.
	//
	// +listType=atomic
	// +optional
	Fields []string `json:"fields,omitempty"`
	// Selectors lists the fields that contain references that select by label: a
	// list of {group, kind, matchLabels, matchExpressions}.
	//
	// +listType=atomic
	// +optional
	Selectors []string `json:"selectors,omitempty"`
	// Workloads lists the fields that contain selectors of pods. Overrule does not
	// evaluate them: a warning is returned for such a policy.
	//
	// +listType=atomic
	// +optional
	Workloads []string `json:"workloads,omitempty"`
	// GatewayLabel is the label of the pods of a Gateway whose value is its name. A selector
	// of pods by this label alone selects the Gateway in the namespace of the policy, or in all
	// namespaces for one of globalFrom, unless it is a waypoint.
	//
	// +optional
	GatewayLabel string `json:"gatewayLabel,omitempty"`
	// Kinds lists the kinds that may be targeted. If empty, any kind may be.
	//
	// +listType=atomic
	// +optional
	Kinds []TargetKind `json:"kinds,omitempty"`
	// UnnamedRules is set for kinds whose implementation calls the N-th rule of a
	// route rule-N if it has no name, counted from 1: a sectionName rule-N selects that
	// rule, unless a rule has this name. If false, a sectionName selects a rule by its
	// name only.
	//
	// +optional
	UnnamedRules bool `json:"unnamedRules,omitempty"`
	// NotShared lists what a policy must not share with objects that it does not target, so
	// that it has no effect where it does. Port: on a listener or a listener set, the port
	// of a listener of protocol HTTP, with other such listeners of the gateway; one on a
	// listener keeps policies on its parent off this listener, too. Path: on a
	// route, a path of its matches, with other routes on the hostname and port; then it
	// has no effect on other targets either.
	//
	// +kubebuilder:validation:MaxItems=2
	// +listType=atomic
	// +optional
	NotShared []SharedPart `json:"notShared,omitempty"`
	// Listeners lists what a listener must have, so that policies have an effect on it and
	// on the routes that are attached there: Own, that it is one of a Gateway and not of a
	// ListenerSet; Hostname, a hostname; TLS, that it terminates TLS with certificateRefs, all
	// of its namespace; OwnTLS, that it terminates TLS for policies on the listener itself. With
	// First, the listeners on a port have the policies of the first of them.
	//
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Listeners []ListenerTrait `json:"listeners,omitempty"`
	// SetSections is set for kinds whose implementation looks up the sectionName of a
	// target Gateway among the listeners of its ListenerSets, if it has no such listener.
	//
	// +optional
	SetSections bool `json:"setSections,omitempty"`
	// WholeForAll is set for kinds whose implementation does not read the sectionName of
	// any target of a policy if it has one without, of the same kind.
	//
	// +optional
	WholeForAll bool `json:"wholeForAll,omitempty"`
	// EqualSections lists the controllers, as in spec.controllers, for which a policy on a
	// section of a backend takes no place of one on all of it: the oldest of both counts.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	EqualSections []string `json:"equalSections,omitempty"`
	// WholeBackends lists the controllers that do not read the sections of backends.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	WholeBackends []string `json:"wholeBackends,omitempty"`
	// Alone lists the controllers for which none of several policies on a backend has an
	// effect, with sections or without. It requires that Backend is the only level.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Alone []string `json:"alone,omitempty"`
	// AllBackends lists the controllers for which a policy on a backend of a rule has no
	// effect there, unless each backend of the rule has it, or one with the same rules; a
	// policy that is attached by an annotation, unless the Services of the rule have the same
	// annotations of its domain.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	AllBackends []string `json:"allBackends,omitempty"`
	// AnyBackendWith is the kind of a parametersRef of a gateway, or of its GatewayClass,
	// with which allBackends does not apply to the gateway.
	//
	// +optional
	AnyBackendWith string `json:"anyBackendWith,omitempty"`
	// NumberedSections lists the controllers for which the section of a Service may be the
	// number of a port.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	NumberedSections []string `json:"numberedSections,omitempty"`
	// AllOrNone is set for kinds whose implementation accepts a policy on all of its
	// targets or on none: one that conflicts with another policy on a target has no effect
	// on any.
	//
	// +optional
	AllOrNone bool `json:"allOrNone,omitempty"`
	// Namespaces defines whether a target may be in another namespace than its
	// policy: own, ignored, referenceGrant, consumer or free. It defaults to own.
	//
	// +optional
	Namespaces TargetNamespaces `json:"namespaces,omitempty"`
	// DefaultNamespace is the namespace of a reference without one. It defaults to that of
	// the policy.
	//
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
	// GlobalFrom lists the namespaces whose policies select objects by label in all
	// namespaces, whatever namespaces is.
	//
	// +listType=atomic
	// +optional
	GlobalFrom []string `json:"globalFrom,omitempty"`
	// ClassFrom lists the namespaces whose policies may target a GatewayClass; *
	// matches all. Cluster-scoped policies always may.
	//
	// +listType=atomic
	// +optional
	ClassFrom []string `json:"classFrom,omitempty"`
	// Implicit defines what a policy without a target is attached to. If it is not
	// set, policies must have a target.
	//
	// +optional
	Implicit *ImplicitTarget `json:"implicit,omitempty"`
}

// ListenerTrait is what a listener has.
//
// +kubebuilder:validation:Enum=Own;Hostname;TLS;OwnTLS;First
type ListenerTrait string

// The traits of listeners.
const (
	ListenerOwn      ListenerTrait = "Own"
	ListenerHostname ListenerTrait = "Hostname"
	ListenerTLS      ListenerTrait = "TLS"
	ListenerOwnTLS   ListenerTrait = "OwnTLS"
	ListenerFirst    ListenerTrait = "First"
)

// SharedPart is what several targets may share.
//
// +kubebuilder:validation:Enum=Port;Path
type SharedPart string

// The shared parts.
const (
	SharedPort SharedPart = "Port"
	SharedPath SharedPart = "Path"
)

// TargetKind is a kind that may be targeted.
//
// +kubebuilder:object:generate=true
type TargetKind struct {
	// Group is the API group of the kind: "" for the core group, * for any.
	Group string `json:"group"`
	// Kind is the kind, or * for any kind of the group.
	Kind string `json:"kind"`
	// Names lists the objects of the kind that may be targeted. If empty, all may be.
	//
	// +listType=atomic
	// +optional
	Names []string `json:"names,omitempty"`
	// Section defines what a sectionName refers to. It defaults to the listener of
	// a Gateway or ListenerSet, the rule of a route, and the port name of a Service.
	//
	// +optional
	Section SectionType `json:"section,omitempty"`
	// Of is the kind of the same group on whose object of the same name a target of this
	// kind counts.
	//
	// +optional
	Of string `json:"of,omitempty"`
	// Virtual is set for kinds of whose objects each has a path of its own. Unless Objects is
	// set, a target of such a kind is never reported as not found.
	//
	// +optional
	Virtual bool `json:"virtual,omitempty"`
	// Objects is set for kinds, beside Gateway API's, whose objects are read: one that does not
	// exist is not found, and with Virtual, policies on a namespace are on all in it.
	//
	// +optional
	Objects bool `json:"objects,omitempty"`
}

// SectionType is what the sectionName of a target refers to.
//
// +kubebuilder:validation:Enum=None;Listener;Rule;PortName;PortNumber
type SectionType string

// The types of a section.
const (
	SectionNone       SectionType = "None" // may not be set
	SectionListener   SectionType = "Listener"
	SectionRule       SectionType = "Rule"
	SectionPortName   SectionType = "PortName"
	SectionPortNumber SectionType = "PortNumber"
)

// TargetNamespaces defines under which condition a target may be in another namespace
// than its policy.
//
// +kubebuilder:validation:Enum=own;ignored;referenceGrant;consumer;free
type TargetNamespaces string

// The values of TargetNamespaces (docs/semantics.md, Which policies are on a path).
const (
	// NamespacesOwn requires a target in the policy's own namespace.
	NamespacesOwn TargetNamespaces = "own"
	// NamespacesIgnored does not read the namespace of a reference: the target is in the
	// policy's own.
	NamespacesIgnored TargetNamespaces = "ignored"
	// NamespacesReferenceGrant requires a ReferenceGrant in the target's namespace.
	NamespacesReferenceGrant TargetNamespaces = "referenceGrant"
	// NamespacesConsumer allows any namespace, but the policy affects only traffic from
	// its own namespace.
	NamespacesConsumer TargetNamespaces = "consumer"
	// NamespacesFree allows any namespace.
	NamespacesFree TargetNamespaces = "free"
)

// ImplicitTarget is what a policy without a target is attached to: its namespace, or
// the mesh.
//
// +kubebuilder:object:generate=true
type ImplicitTarget struct {
	// MeshNamespace is the root namespace: a policy without a target in it is
	// attached to the whole mesh. In other namespaces it is attached to the
	// namespace.
	//
	// +optional
	MeshNamespace string `json:"meshNamespace,omitempty"`
	// One is set if only the oldest policy without a target in a namespace is accepted,
	// whatever sameTarget is.
	//
	// +optional
	One bool `json:"one,omitempty"`
	// Label is a label of the policies that are attached so, with the value true. It
	// defaults to all policies.
	//
	// +optional
	Label string `json:"label,omitempty"`
}
