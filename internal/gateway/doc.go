// Package gateway converts Gateway API objects into attachments and paths: which
// routes attach to which listeners, and the chains from a GatewayClass, or in a mesh
// from the Service that is a route's parent, down to a route's rule or backend. It is
// pure, and never reads a status: at admission there is none yet.
//
// No file calls one that is listed after it:
//
//   - hostname, request, defaults, match, commontext: what is written, and texts that meet it
//   - objects, route, route_object, route_decode, convert: the objects
//   - path, listener, listenerpairs, reject: paths, and the listeners that accept routes
//   - routematch, rulepairs, precedence: the conditions of matches, and their order
//   - attachments, neighbors: the routes at the listeners of a gateway, type attachments
//   - matchindex, matching, candidates: the match that a request meets first, type matching
//   - router, mesh: type Router, of both
//   - witness, reach, rivals: requests that meet a match, and rules that get none
//   - search, moves: requests that a change moves
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
