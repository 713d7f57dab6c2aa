// Package gateway turns Gateway API objects into attachments and paths:
// which routes are on which listeners, and the chains from a GatewayClass, or
// from the Service that is a mesh's parent, down to a route's rule or backend.
// Values in, values out: nothing is read from a status, since at admission
// there is none yet.
package gateway

// Level is a level of the hierarchy, the root first. SEMANTICS section 1.
type Level int

// The levels, from the least to the most specific. A path has those of a
// gateway or those of a service, and then those of the route.
const (
	LevelMesh Level = iota
	LevelGatewayClass
	LevelGatewayNamespace
	LevelGateway
	LevelListenerSet
	LevelListener
	LevelServiceNamespace
	LevelService
	LevelServicePort
	LevelRouteNamespace
	LevelRoute
	LevelRule
	LevelBackend
	LevelBackendPort
	// LevelObject is that of a route's own fields, below every policy.
	LevelObject
)
