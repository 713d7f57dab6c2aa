package v1alpha1

// ProfileAttachment defines the references of other objects that attach a policy to
// them. The policy is in the namespace of the object, or in the one that the annotation, or
// the parametersRef of a GatewayClass, names.
//
// +kubebuilder:object:generate=true
type ProfileAttachment struct {
	// ExtensionRef attaches a policy to the rules of routes that have a filter of type
	// ExtensionRef for it. It is more specific there than policies that target the rule;
	// of several filters, the first is the highest.
	//
	// +optional
	ExtensionRef bool `json:"extensionRef,omitempty"`
	// ParametersRef attaches a policy to the GatewayClasses whose parametersRef names it,
	// and to the Gateways whose infrastructure.parametersRef does.
	//
	// +optional
	ParametersRef bool `json:"parametersRef,omitempty"`
	// Annotation is an annotation of Services and routes that lists the names of the
	// policies that are attached to them, separated by commas. With targets.namespaces
	// referenceGrant, one may be NAMESPACE:NAME, which needs a ReferenceGrant there.
	//
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Annotation string `json:"annotation,omitempty"`
	// InsteadOf is another kind of the group with the same rules. Policies of this kind are
	// cluster-scoped, and the annotation names one where the namespace has none of the other
	// kind with its name. Of two policies of these kinds with a rule, the closer one counts.
	//
	// +optional
	InsteadOf string `json:"insteadOf,omitempty"`
	// Through attaches a policy without a target to the objects that are attached by their
	// parametersRef to a policy of another kind that names it.
	//
	// +optional
	Through *AttachedThrough `json:"through,omitempty"`
}

// AttachedThrough defines the policies of another kind that name those of a kind. Of the
// policies that are attached so, one of a GatewayClass takes the place of those of its
// Gateways where the rules of the policy that names it are overrides.
//
// +kubebuilder:object:generate=true
type AttachedThrough struct {
	// Kind is the other kind, of the same group. It has parametersRef and the strategy patch.
	//
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Field is the field of its content with the name of a policy in the same namespace.
	//
	// +kubebuilder:validation:MinLength=1
	Field string `json:"field"`
}

// ProfileWaypoints defines the waypoints of Services: gateways inside a mesh that
// requests to a Service go through. The path of a Service goes through its waypoint.
//
// +kubebuilder:object:generate=true
type ProfileWaypoints struct {
	// Label is the label of a Service, or else of its namespace, whose value is the name
	// of the waypoint. The waypoint must have a listener of the protocol that admits
	// the namespace of the Service; without such a listener it serves its own namespace.
	//
	// +kubebuilder:validation:MinLength=1
	Label string `json:"label"`
	// NamespaceLabel is the label of the same object whose value is the namespace of the
	// waypoint. It defaults to the namespace of the Service.
	//
	// +optional
	NamespaceLabel string `json:"namespaceLabel,omitempty"`
	// None is the value of the label of a Service without a waypoint.
	//
	// +optional
	None string `json:"none,omitempty"`
	// Protocol is the protocol of the listeners of waypoints. A gateway that has such a
	// listener is a waypoint, whether a Service uses it or not.
	//
	// +kubebuilder:validation:MinLength=1
	Protocol string `json:"protocol"`
	// Classes lists the GatewayClasses whose gateways are waypoints in any case.
	//
	// +listType=atomic
	// +optional
	Classes []string `json:"classes,omitempty"`
	// Purpose restricts which gateways are waypoints of Services, by a label of the
	// gateway or else of its GatewayClass. Those without the label are.
	//
	// +optional
	Purpose *WaypointPurpose `json:"purpose,omitempty"`
	// TargetedOnly is set if policies that are attached to the mesh or a namespace have no
	// effect at waypoints.
	//
	// +optional
	TargetedOnly bool `json:"targetedOnly,omitempty"`
	// OwnNamespace is set if policies on a waypoint have no effect on Services of other
	// namespaces.
	//
	// +optional
	OwnNamespace bool `json:"ownNamespace,omitempty"`
}

// WaypointPurpose selects the gateways that serve Services by a label.
//
// +kubebuilder:object:generate=true
type WaypointPurpose struct {
	// Label is the label of the gateway, or else of its GatewayClass.
	//
	// +kubebuilder:validation:MinLength=1
	Label string `json:"label"`
	// Values lists the values of the label with which a gateway serves Services.
	//
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Values []string `json:"values"`
}
