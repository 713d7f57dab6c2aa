// Package gateway converts Gateway API objects into attachments and paths: which
// routes attach to which listeners, and the chains from a GatewayClass, or in a mesh
// from the Service that is a route's parent, down to a route's rule or backend. It is
// pure, and never reads a status: at admission there is none yet.
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
	// LevelFilter is that of the filters of a rule.
	LevelFilter
	LevelBackend
	LevelBackendPort
	// LevelObject is that of a route's own fields, below every policy.
	LevelObject
)
