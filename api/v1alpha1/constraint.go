package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kinds of constraints.
const (
	KindPolicyConstraint        = "PolicyConstraint"
	KindClusterPolicyConstraint = "ClusterPolicyConstraint"
)

// PolicyConstraint says what must be true of the effective policy on every path
// through objects of its own namespace, whichever policies it comes from. It
// binds writes of objects at or below its highest target on a path; others get a
// warning. Values that other namespaces attach above it are opaque to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pcon
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Policies",type=string,JSONPath=`.spec.policyKind.kind`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:object:generate=true
type PolicyConstraint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConstraintSpec   `json:"spec"`
	Status ConstraintStatus `json:"status,omitempty"`
}

// PolicyConstraintList is a list of constraints.
//
// +kubebuilder:object:root=true
// +kubebuilder:object:generate=true
type PolicyConstraintList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PolicyConstraint `json:"items"`
}

// ClusterPolicyConstraint is a PolicyConstraint for paths in any namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cpcon
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Policies",type=string,JSONPath=`.spec.policyKind.kind`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:object:generate=true
type ClusterPolicyConstraint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConstraintSpec   `json:"spec"`
	Status ConstraintStatus `json:"status,omitempty"`
}

// ClusterPolicyConstraintList is a list of constraints.
//
// +kubebuilder:object:root=true
// +kubebuilder:object:generate=true
type ClusterPolicyConstraintList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPolicyConstraint `json:"items"`
}

// ConstraintSpec is what a constraint demands, and of which paths.
//
// +kubebuilder:validation:XValidation:rule="has(self.validations) || has(self.rules)",message="a constraint needs validations or rules"
// +kubebuilder:object:generate=true
type ConstraintSpec struct {
	// PolicyKind is the kind whose effective policies are judged. It need not
	// be installed: the constraint is in force once it is.
	PolicyKind ConstrainedKind `json:"policyKind"`

	// Targets are objects: a path through any of them is judged. Empty: every
	// path through an object of the constraint's own namespace, or every path
	// of the cluster for a ClusterPolicyConstraint.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Targets []ConstraintTarget `json:"targets,omitempty"`

	// Enforcement is what is done about a write that introduces a violation.
	//
	// +kubebuilder:default=Deny
	// +kubebuilder:validation:Enum=Deny;Warn;Audit
	// +optional
	Enforcement Action `json:"enforcement,omitempty"`

	// Validations in CEL, all of which must be true.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Validations []ConstraintValidation `json:"validations,omitempty"`

	// Rules are demands on single values, without CEL.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Rules []ConstraintRule `json:"rules,omitempty"`
}

// ConstrainedKind names the policy kind of a constraint.
//
// +kubebuilder:object:generate=true
type ConstrainedKind struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// ConstraintTarget chooses objects that paths go through: a GatewayClass,
// Gateway, ListenerSet, route, Service or other backend, or a Namespace (all
// gateways, listener sets, services and routes in it).
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.selector))",message="name and selector exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.sectionName) || has(self.name)",message="sectionName needs a name"
// +kubebuilder:object:generate=true
type ConstraintTarget struct {
	// Group of the objects: Gateway API's unless it is given; empty for the
	// core group, as for Service and Namespace.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group *string `json:"group,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace of the object; a PolicyConstraint may name its own alone.
	// Empty: any in a ClusterPolicyConstraint.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object. Neither a name nor a selector: all of the kind.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// SectionName is a listener's, a rule's or a port's name.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SectionName string `json:"sectionName,omitempty"`
	// Selector chooses by labels.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ConstraintValidation is one demand in CEL.
//
// +kubebuilder:object:generate=true
type ConstraintValidation struct {
	// Expression must be true. It reads effective, origins, path, before and
	// request (docs/guardrails.md).
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
	// Message says what is wrong where the expression is not true.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// MessageExpression is CEL that yields the message; where it fails,
	// Message is used.
	//
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ConstraintRule demands something of the values at an address of the effective
// spec. One that sets none of required, min, max, enum and pattern is Invalid.
//
// +kubebuilder:validation:MinProperties=2
// +kubebuilder:object:generate=true
type ConstraintRule struct {
	// Path is an address in the effective spec: limits.*.rates[*].limit. * is
	// any name, [*] any item of a list.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// Required demands that there is something at the address.
	//
	// +optional
	Required bool `json:"required,omitempty"`
	// Min and Max bound a value: a number (1000, "0.5"), a quantity ("1Gi") or
	// a duration ("30s"). A value of another sort is a violation.
	//
	// +optional
	Min *intstr.IntOrString `json:"min,omitempty"`
	// +optional
	Max *intstr.IntOrString `json:"max,omitempty"`
	// Enum are the values that there may be.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Enum []apiextensionsv1.JSON `json:"enum,omitempty"`
	// Pattern is a regular expression (RE2) that a text must match somewhere.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Pattern string `json:"pattern,omitempty"`
	// Message says what is wrong; the default names path, value and demand.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// ConstraintStatus tells whether a constraint is in force.
//
// +kubebuilder:object:generate=true
type ConstraintStatus struct {
	// Conditions hold one of type Accepted: true (reason Accepted, or
	// KindNotInstalled as long as its policy kind is not), or false with the
	// reason Invalid, or TargetNotFound if no target exists.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
