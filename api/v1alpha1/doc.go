// Package v1alpha1 has the API types of Overrule: its custom resources, the JSON
// output of the CLI, the reason codes of its decisions and the names of its
// annotations.
//
// The JSON is a contract. References are {group, kind, namespace, name} with
// empty fields omitted, and every list has a total order.
// +groupName=overrule.dev
package v1alpha1

// Group is the API group of this package.
const Group = "overrule.dev"

// APIVersion is the apiVersion of every document of this package.
const APIVersion = Group + "/v1alpha1"

// GatewayGroup is the API group of Gateway API.
const GatewayGroup = "gateway.networking.k8s.io"

// GatewayXGroup is the API group of experimental Gateway API kinds.
const GatewayXGroup = "gateway.networking.x-k8s.io"
