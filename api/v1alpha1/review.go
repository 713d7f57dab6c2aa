package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindEffectivePolicyReview is the kind of EffectivePolicyReview.
const KindEffectivePolicyReview = "EffectivePolicyReview"

// EffectivePolicyReview asks which policies hold for an object, and why. It is answered
// and never stored: create it with a dry run, and read the answer from its status.
//
//	kubectl create --dry-run=server -o yaml -f review.yaml
//
// The answer has what the commands effective and explain of the kubectl plugin show. The
// object must be one of the namespace of the review that the user is allowed to get.
// Values and conditions of policies that the user is not allowed to get are left out.
//
// +kubebuilder:resource:shortName=epr
type EffectivePolicyReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReviewSpec `json:"spec"`
	// Status is the answer. A status in the request is replaced.
	//
	// +optional
	Status *ReviewStatus `json:"status,omitempty"`
}

// ReviewSpec is a question.
type ReviewSpec struct {
	// Object is a route, a Gateway, a ListenerSet, a Service or other backend, or a
	// policy.
	Object ReviewObject `json:"object"`
	// PolicyKinds limit the answer to these kinds of policies.
	//
	// +kubebuilder:validation:MaxItems=32
	// +optional
	PolicyKinds []PolicyKind `json:"policyKinds,omitempty"`
	// Rule limits explanations and reaches to one rule by its key, to the rules under a
	// prefix of keys, or to the rules of a name. Without parts, the answer then has the
	// explanations alone.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Rule string `json:"rule,omitempty"`
	// Request limits the answer to the paths along which a request goes.
	//
	// +optional
	Request *ReviewRequest `json:"request,omitempty"`
	// Parts of the answer. The default is Items, Outcomes and Explanations.
	//
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Parts []ReviewPart `json:"parts,omitempty"`
	// MaxPaths limits the number of items and of explanations. Answers are also limited
	// in size.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxPaths *int32 `json:"maxPaths,omitempty"`
}

// ReviewObject is the object that a review is about.
type ReviewObject struct {
	// Group of the kind, empty for the core group.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace must be that of the review. It is the default.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Section limits the answer to a listener, a rule or a port of the object.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Section string `json:"section,omitempty"`
}

// ReviewRequest is a request, as that of the option --request of the kubectl plugin.
type ReviewRequest struct {
	// Method is GET by default.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Method string `json:"method,omitempty"`
	// URL has the scheme http, https, grpc, grpcs, tls, tcp or udp.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	URL string `json:"url"`
	// Headers are given as "name: value".
	//
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Headers []string `json:"headers,omitempty"`
	// Gateway is the only one to look at, given as NAMESPACE/NAME or as NAME in the
	// namespace.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Gateway string `json:"gateway,omitempty"`
	// Port of the listener, if it is not that of the URL.
	//
	// +optional
	Port *int32 `json:"port,omitempty"`
	// ServerName of the TLS connection, if it is not the host.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServerName string `json:"serverName,omitempty"`
	// ClientNamespace is that of a client in a mesh, whose request goes to a Service.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ClientNamespace string `json:"clientNamespace,omitempty"`
}

// ReviewPart is a part of an answer.
//
// +kubebuilder:validation:Enum=Items;Outcomes;Explanations;Reaches
type ReviewPart string

// The parts of an answer.
const (
	ReviewItems        ReviewPart = "Items"
	ReviewOutcomes     ReviewPart = "Outcomes"
	ReviewExplanations ReviewPart = "Explanations"
	ReviewReaches      ReviewPart = "Reaches"
)

// ReviewStatus is an answer.
type ReviewStatus struct {
	// Message says why the answer is empty, or what it does not include.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// Items are the effective policies on the paths.
	//
	// +optional
	Items []EffectivePolicy `json:"items,omitempty"`
	// Outcomes are those of the named policy, or of the policies on the paths and of
	// those that target the object.
	//
	// +optional
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Explanations list what each policy contributes and loses on each path.
	//
	// +optional
	Explanations []Explanation `json:"explanations,omitempty"`
	// Reaches are where the named policy has an effect, or the policies that affect the
	// object.
	//
	// +optional
	Reaches []Reach `json:"reaches,omitempty"`
	// Request is where the request goes.
	//
	// +optional
	Request *ServedRequest `json:"request,omitempty"`
	// Redacted is true if values, conditions or reasons are left out, because the user
	// is not allowed to get the objects that they come from.
	//
	// +optional
	Redacted bool `json:"redacted,omitempty"`
	// Truncated is set if the answer is not complete.
	//
	// +optional
	Truncated *ReviewTruncation `json:"truncated,omitempty"`
}

// ReviewTruncation counts what an answer leaves out because of its size.
type ReviewTruncation struct {
	// +optional
	Items int `json:"items,omitempty"`
	// +optional
	Outcomes int `json:"outcomes,omitempty"`
	// +optional
	Explanations int `json:"explanations,omitempty"`
	// +optional
	Reaches int `json:"reaches,omitempty"`
	// Request counts gateways, Services and rules that the request meets.
	//
	// +optional
	Request int `json:"request,omitempty"`
	// Message says how to ask for less.
	Message string `json:"message"`
}
