package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
)

// shape is what the paths of a kind are like.
type shape struct {
	// gateway and mesh tell whether paths start at gateways, at services.
	gateway, mesh bool
	// gatewayEnd and meshEnd are where they end.
	gatewayEnd, meshEnd hierarchy.Level
	// has tells at which levels policies may stand.
	has [hierarchy.LevelObject + 1]bool
	// routes are the kinds of routes that paths go through, nil for all.
	routes []string
}

var levelNames = map[api.LevelName][]hierarchy.Level{
	api.LevelMesh:             {hierarchy.LevelMesh},
	api.LevelGatewayClass:     {hierarchy.LevelGatewayClass},
	api.LevelGatewayNamespace: {hierarchy.LevelGatewayNamespace},
	api.LevelGateway:          {hierarchy.LevelGateway},
	api.LevelListenerSet:      {hierarchy.LevelListenerSet},
	api.LevelListener:         {hierarchy.LevelListener},
	api.LevelServiceNamespace: {hierarchy.LevelServiceNamespace},
	api.LevelService:          {hierarchy.LevelService, hierarchy.LevelServicePort},
	api.LevelRouteNamespace:   {hierarchy.LevelRouteNamespace},
	api.LevelRoute:            {hierarchy.LevelRoute},
	api.LevelRule:             {hierarchy.LevelRule},
	api.LevelBackend:          {hierarchy.LevelBackend, hierarchy.LevelBackendPort},
}

// shape returns the shape of a kind.
func (e *Engine) shape(k *policykind.Kind) *shape {
	if s, ok := e.shapes.Get(k); ok {
		return s.(*shape) //nolint:forcetypeassert // nothing else is in there
	}
	s := shapeOf(k)
	e.shapes.Add(k, s)
	return s
}

func shapeOf(k *policykind.Kind) *shape {
	s := &shape{}
	for _, name := range k.Levels {
		for _, l := range levelNames[name] {
			s.has[l] = true
		}
	}
	s.mesh = s.has[hierarchy.LevelServiceNamespace] || s.has[hierarchy.LevelService]
	s.gateway = !s.mesh || slices.Contains(s.has[hierarchy.LevelGatewayClass:hierarchy.LevelServiceNamespace], true)
	s.gatewayEnd, s.meshEnd = s.ends()
	for _, t := range k.Targets.Kinds {
		if t.Kind == "*" {
			s.routes = nil
			break
		}
		if hierarchy.IsRoute(api.PolicyKind{Group: t.Group, Kind: t.Kind}) {
			s.routes = append(s.routes, t.Kind)
		}
	}
	return s
}

// ends returns where paths end: at the last of the route's levels that the
// kind has, else at that of the gateway or the service.
func (s *shape) ends() (gw, mesh hierarchy.Level) {
	switch {
	case s.has[hierarchy.LevelBackend]:
		return hierarchy.LevelBackend, hierarchy.LevelBackend
	case s.has[hierarchy.LevelRule]:
		return hierarchy.LevelRule, hierarchy.LevelRule
	case s.has[hierarchy.LevelRoute] || s.has[hierarchy.LevelRouteNamespace]:
		return hierarchy.LevelRoute, hierarchy.LevelRoute
	case s.has[hierarchy.LevelListener] || s.has[hierarchy.LevelListenerSet]:
		return hierarchy.LevelListener, hierarchy.LevelService
	default:
		return hierarchy.LevelGateway, hierarchy.LevelService
	}
}

// through reports whether paths go through a kind of routes: a kind that names
// kinds of routes that it may target has nothing to say about others.
func (s *shape) through(kind string) bool { return s.routes == nil || slices.Contains(s.routes, kind) }

// namespaces marks the namespaces that are levels of the path.
func (s *shape) namespaces(p hierarchy.Path) hierarchy.Path {
	p.GatewayNamespace = s.has[hierarchy.LevelGatewayNamespace]
	p.ServiceNamespace = s.has[hierarchy.LevelServiceNamespace]
	p.RouteNamespace = s.has[hierarchy.LevelRouteNamespace]
	return p
}
