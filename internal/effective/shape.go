package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// shape describes the paths of a kind.
type shape struct {
	// gateway and mesh are set if paths start at gateways, and at services.
	gateway, mesh bool
	// gatewayEnd and meshEnd are the levels at which they end.
	gatewayEnd, meshEnd gateway.Level
	// levels at which policies of the kind are supported.
	levels levelSet
	// onto are the levels whose policies a lower policy may be merged with.
	onto levelSet
	// routes are the kinds of routes that paths go through, nil for all.
	routes []string
}

// levelSet is a set of levels.
type levelSet [gateway.LevelObject + 1]bool

var levelNames = map[api.LevelName][]gateway.Level{
	api.LevelMesh:             {gateway.LevelMesh},
	api.LevelGatewayClass:     {gateway.LevelGatewayClass},
	api.LevelGatewayNamespace: {gateway.LevelGatewayNamespace},
	api.LevelGateway:          {gateway.LevelGateway},
	api.LevelListenerSet:      {gateway.LevelListenerSet},
	api.LevelListener:         {gateway.LevelListener},
	api.LevelServiceNamespace: {gateway.LevelServiceNamespace},
	api.LevelService:          {gateway.LevelService, gateway.LevelServicePort},
	api.LevelRouteNamespace:   {gateway.LevelRouteNamespace},
	api.LevelRoute:            {gateway.LevelRoute},
	api.LevelRule:             {gateway.LevelRule},
	api.LevelBackend:          {gateway.LevelBackend, gateway.LevelBackendPort},
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

func levelsOf(names []api.LevelName) (out levelSet) {
	for _, name := range names {
		for _, l := range levelNames[name] {
			out[l] = true
		}
	}
	return out
}

func shapeOf(k *policykind.Kind) *shape {
	s := &shape{levels: levelsOf(k.Levels), onto: levelsOf(k.Strategy.Onto)}
	if len(k.Strategy.Onto) == 0 {
		s.onto = s.levels
	}
	s.mesh = s.levels[gateway.LevelServiceNamespace] || s.levels[gateway.LevelService]
	s.gateway = !s.mesh || slices.Contains(s.levels[gateway.LevelGatewayClass:gateway.LevelServiceNamespace], true)
	s.gatewayEnd, s.meshEnd = s.ends()
	for _, t := range k.Targets.Kinds {
		if t.Kind == "*" {
			s.routes = nil
			break
		}
		if gateway.IsRoute(api.PolicyKind{Group: t.Group, Kind: t.Kind}) {
			s.routes = append(s.routes, t.Kind)
		}
	}
	return s
}

// ends returns the levels at which paths end: the last of the route's levels that the
// kind has, else that of the gateway or the service.
func (s *shape) ends() (gw, mesh gateway.Level) {
	switch {
	case s.levels[gateway.LevelBackend]:
		return gateway.LevelBackend, gateway.LevelBackend
	case s.levels[gateway.LevelRule]:
		return gateway.LevelRule, gateway.LevelRule
	case s.levels[gateway.LevelRoute] || s.levels[gateway.LevelRouteNamespace]:
		return gateway.LevelRoute, gateway.LevelRoute
	case s.levels[gateway.LevelListener] || s.levels[gateway.LevelListenerSet]:
		return gateway.LevelListener, gateway.LevelService
	default:
		return gateway.LevelGateway, gateway.LevelService
	}
}

// includesRoute reports whether paths go through a kind of routes. A policy kind that
// lists kinds of routes as targets does not apply to others.
func (s *shape) includesRoute(kind string) bool {
	return s.routes == nil || slices.Contains(s.routes, kind)
}

// markNamespaces marks the namespaces that are levels of the path.
func (s *shape) markNamespaces(p gateway.Path) gateway.Path {
	p.GatewayNamespace = s.levels[gateway.LevelGatewayNamespace]
	p.ServiceNamespace = s.levels[gateway.LevelServiceNamespace]
	p.RouteNamespace = s.levels[gateway.LevelRouteNamespace]
	return p
}
