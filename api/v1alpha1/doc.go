// Package v1alpha1 is what Overrule says to others: the JSON of the CLI, the
// reasons for its decisions and the annotations that it writes.
//
// The JSON is a contract. References are {group, kind, namespace, name} with
// empty fields left out, and every list has a total order.
// +groupName=overrule.dev
package v1alpha1

// Group is the API group of this package.
const Group = "overrule.dev"

// APIVersion is the apiVersion of every document of this package.
const APIVersion = Group + "/v1alpha1"

// Annotations that Overrule writes, and nothing else does.
const (
	// AnnotationPrefix is the prefix of them all.
	AnnotationPrefix = "overrule.dev/"
	// AnnotationEffectivePolicy stands on routes: per policy kind and path,
	// which policy gives each rule.
	AnnotationEffectivePolicy = AnnotationPrefix + "effective-policy"
	// AnnotationOutcome stands on policies: state, counts, what beat it.
	AnnotationOutcome = AnnotationPrefix + "outcome"
)

// AnnotationAcknowledge is what people write: the hash that a denial for
// BlastRadius printed, on the object whose write it denied.
const AnnotationAcknowledge = AnnotationPrefix + "acknowledge-blast-radius"

// GatewayGroup is the API group of Gateway API.
const GatewayGroup = "gateway.networking.k8s.io"
