package effective

import (
	"k8s.io/utils/lru"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Engine computes effective policies. Its memo is shared by all users of it. It is safe
// for concurrent use.
type Engine struct {
	memo   memo
	shapes *lru.Cache // of kinds, each *shape
}

// NewEngine returns an engine.
func NewEngine() *Engine { return &Engine{shapes: lru.New(maxShapes)} }

// OnServices reports whether paths of a kind start at the Services that are
// parents of routes.
func (e *Engine) OnServices(k *policykind.Kind) bool { return e.shape(k).mesh }

// AppliesTo reports whether policies of a kind apply to a kind of routes.
func (e *Engine) AppliesTo(k *policykind.Kind, route string) bool {
	return e.shape(k).includesRoute(route)
}

// EndsAboveRoutes reports whether no path of a kind goes through a route.
func (e *Engine) EndsAboveRoutes(k *policykind.Kind) bool {
	s := e.shape(k)
	return max(s.gatewayEnd, s.meshEnd) < gateway.LevelRouteNamespace
}

// shape returns the shape of a kind.
func (e *Engine) shape(k *policykind.Kind) *shape {
	if s, ok := e.shapes.Get(k); ok {
		return s.(*shape) //nolint:forcetypeassert // the cache holds nothing else
	}
	s := shapeOf(k)
	e.shapes.Add(k, s)
	return s
}
