// Package hierarchy turns Gateway API objects into attachments and paths:
// which routes are on which listeners, and the chains from a GatewayClass to
// a route's rule. Values in, values out: nothing is read from a status, since
// at admission there is none yet.
package hierarchy

// Level is a level of the hierarchy, the root first. SEMANTICS section 1.
type Level int

// The levels, from the least to the most specific.
const (
	LevelGatewayClass Level = iota
	LevelGatewayNamespace
	LevelGateway
	LevelListenerSet
	LevelListener
	LevelRouteNamespace
	LevelRoute
	LevelRule
	LevelBackend
)
