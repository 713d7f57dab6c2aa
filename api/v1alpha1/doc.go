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

// GatewayGroup is the API group of Gateway API.
const GatewayGroup = "gateway.networking.k8s.io"

// GatewayXGroup is the API group of what is experimental in Gateway API.
const GatewayXGroup = "gateway.networking.x-k8s.io"
