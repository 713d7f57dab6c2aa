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

// PolicyConstraint defines requirements for the effective policy on every path
// through objects of its own namespace, regardless of the policies that it is
// made of. It is enforced for writes of objects at or below its highest target on
// a path; other writes get a warning. It cannot read values that policies of other
// namespaces set above it.
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

// ConstraintSpec defines the requirements of a constraint, and the paths that they
// apply to.
//
// +kubebuilder:validation:XValidation:rule="has(self.validations) || has(self.rules)",message="must set validations or rules"
// +kubebuilder:object:generate=true
type ConstraintSpec struct {
	// PolicyKind is the kind whose effective policies are validated. It need not
	// be installed: the constraint takes effect once it is.
	PolicyKind ConstrainedKind `json:"policyKind"`

	// Targets selects the paths that are validated: those through any of these
	// objects. If empty, it is every path through an object of the constraint's
	// own namespace, or for a ClusterPolicyConstraint every path of the cluster.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Targets []ConstraintTarget `json:"targets,omitempty"`

	// Enforcement is the action for a write that introduces a violation: Deny,
	// Warn or Audit.
	//
	// +kubebuilder:default=Deny
	// +kubebuilder:validation:Enum=Deny;Warn;Audit
	// +optional
	Enforcement Action `json:"enforcement,omitempty"`

	// GracePeriod is for how long a violation is allowed, with a warning, after a
	// gateway, listener set or route of the path was created, or a policy of the kind on
	// it was deleted, for example 5m. After it, writes of an object that was created
	// after the constraint are denied while it violates the constraint.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +optional
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`

	// Validations are CEL expressions, all of which must be true.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Validations []ConstraintValidation `json:"validations,omitempty"`

	// Rules are requirements for single values, without CEL.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Rules []ConstraintRule `json:"rules,omitempty"`
}

// ConstrainedKind identifies the policy kind of a constraint.
//
// +kubebuilder:object:generate=true
type ConstrainedKind struct {
	// Group is the API group of the policy kind.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// Kind is the policy kind.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// ConstraintTarget selects objects on paths: a GatewayClass, Gateway, ListenerSet,
// route, Service or other backend, or a Namespace (all gateways, listener sets,
// services and routes in it).
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.selector))",message="name and selector are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="!has(self.sectionName) || has(self.name)",message="sectionName requires name"
// +kubebuilder:object:generate=true
type ConstraintTarget struct {
	// Group is the API group of the objects. It defaults to that of Gateway API.
	// Set it to "" for the core group, as for Service and Namespace.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group *string `json:"group,omitempty"`
	// Kind is the kind of the objects.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace is the namespace of the objects. In a PolicyConstraint it must be
	// the constraint's own or empty. In a ClusterPolicyConstraint, empty selects
	// all namespaces.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object. If neither name nor selector is set, all
	// objects of the kind are selected.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// SectionName is the name of a listener, a rule or a port of the object.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SectionName string `json:"sectionName,omitempty"`
	// Selector selects the objects by their labels.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ConstraintValidation is a requirement in CEL.
//
// +kubebuilder:object:generate=true
type ConstraintValidation struct {
	// Expression is a CEL expression that must evaluate to true. Its variables are
	// effective, origins, path, before and request; see docs/constraints.md.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
	// Message is reported if the expression is not true.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// MessageExpression is a CEL expression that returns the message. If it fails,
	// message is used.
	//
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ConstraintRule is a requirement for the values at a field path of the effective
// spec. It is Invalid unless at least one of required, min, max, enum and pattern
// is set.
//
// +kubebuilder:validation:MinProperties=2
// +kubebuilder:object:generate=true
type ConstraintRule struct {
	// Path is a field path in the effective spec, such as limits.*.rates[*].limit.
	// * matches any name, [*] any item of a list.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// Required requires a value at the path.
	//
	// +optional
	Required bool `json:"required,omitempty"`
	// Min is the minimum value: a number (1000, "0.5"), a quantity ("1Gi") or a
	// duration ("30s"). A value of another type is a violation.
	//
	// +optional
	Min *intstr.IntOrString `json:"min,omitempty"`
	// Max is the maximum value, in the same format as min.
	//
	// +optional
	Max *intstr.IntOrString `json:"max,omitempty"`
	// Enum lists the allowed values.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Enum []apiextensionsv1.JSON `json:"enum,omitempty"`
	// Pattern is a regular expression (RE2) that must match a part of a string
	// value.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Pattern string `json:"pattern,omitempty"`
	// Message is reported for a violation. By default it contains the path, the
	// value and the requirement.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// ConstraintStatus is the status of a constraint.
//
// +kubebuilder:object:generate=true
type ConstraintStatus struct {
	// Conditions contains a condition of type Accepted. It is true with the reason
	// Accepted, or KindNotInstalled while the policy kind is not installed. It is
	// false with the reason Invalid, or TargetNotFound if no target exists.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
