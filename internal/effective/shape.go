package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// levels is a set of levels.
type levels uint32

func levelsOf(all ...gateway.Level) (out levels) {
	for _, l := range all {
		out |= 1 << l
	}
	return out
}

func (s levels) has(l gateway.Level) bool { return s&(1<<l) != 0 }

const allLevels = ^levels(0)

// shape describes the paths of a kind.
type shape struct {
	// gateway and mesh are set if paths start at gateways, and at services.
	gateway, mesh bool
	// gatewayEnd and meshEnd are the levels at which they end.
	gatewayEnd, meshEnd gateway.Level
	// levels at which policies of the kind are supported.
	levels levels
	// bareOverrides are the levels at which bare rules may be overrides and are defaults at
	// others.
	bareOverrides levels
	// tiers has a number for each level, the same for levels that count as one; tlsTiers
	// are those on the paths of listeners with TLS.
	tiers, tlsTiers [gateway.LevelObject + 1]int
	// depths are the Depth of the layers of each level.
	depths [gateway.LevelObject + 1]int
	// routes are the kinds of routes that paths go through, nil for all.
	routes []string
}

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
	api.LevelRule:             {gateway.LevelRule, gateway.LevelFilter},
	api.LevelBackend:          {gateway.LevelBackend, gateway.LevelBackendPort},
}

func shapeOf(k *policykind.Kind) *shape {
	s := &shape{}
	for _, name := range k.Levels {
		s.levels |= levelsOf(levelNames[name]...)
	}
	if b := k.Blocks.Bare; b != nil {
		for _, name := range b.Levels {
			s.bareOverrides |= levelsOf(levelNames[name]...)
		}
	}
	if k.RoutesFirst() {
		for _, l := range levelNames[api.LevelBackend] {
			s.depths[l] = int(gateway.LevelRouteNamespace)
		}
	}
	for l := range s.tiers {
		s.tiers[l] = l
	}
	for _, joined := range k.JoinedLevels {
		join(&s.tiers, joined)
	}
	s.tlsTiers = s.tiers
	join(&s.tlsTiers, k.JoinedWithTLS)
	s.mesh = s.levels.has(gateway.LevelServiceNamespace) || s.levels.has(gateway.LevelService)
	s.gateway = !s.mesh || s.levels&(levelsOf(gateway.LevelServiceNamespace)-levelsOf(gateway.LevelGatewayClass)) != 0
	s.gatewayEnd, s.meshEnd = s.ends()
	if s.routes = k.Routes; len(s.routes) == 0 {
		s.routes = targetedRoutes(k)
	}
	return s
}

// targetedRoutes returns the kinds of routes that policies of a kind list as targets, nil if
// they may target all.
func targetedRoutes(k *policykind.Kind) []string {
	var out []string
	for _, t := range k.Targets.Kinds {
		if t.Kind == "*" {
			return nil
		}
		if gateway.IsRoute(api.PolicyKind{Group: t.Group, Kind: t.Kind}) {
			out = append(out, t.Kind)
		}
	}
	return out
}

// join gives levels the number of the first one.
func join(tiers *[gateway.LevelObject + 1]int, joined []api.LevelName) {
	for _, name := range joined {
		for _, l := range levelNames[name] {
			tiers[l] = int(levelNames[joined[0]][0])
		}
	}
}

// tier returns the number of a level on a path.
func (s *shape) tier(l gateway.Level, p *gateway.Path) int {
	if p.Listener != nil && p.Listener.TLS() {
		return s.tlsTiers[l]
	}
	return s.tiers[l]
}

// MayMerge reports whether a policy on a path may be merged onto a higher one by its own
// strategy. It may not onto one at a level that is joined with its own, and in kinds with
// policies on routes, only one on a route may be.
func (e *Effective) MayMerge(lower, higher *merge.Policy) bool {
	s, at := shapeOf(e.Kind), e.Level(lower)
	onRoutes := s.levels.has(gateway.LevelRoute) || s.levels.has(gateway.LevelRule)
	return s.tier(at, &e.Path) != s.tier(e.Level(higher), &e.Path) && (!onRoutes || at >= gateway.LevelRoute)
}

// ends returns the levels at which paths end: the last of the route's levels that the
// kind has, else that of the gateway or the service.
func (s *shape) ends() (gw, mesh gateway.Level) {
	switch {
	case s.levels.has(gateway.LevelBackend):
		return gateway.LevelBackend, gateway.LevelBackend
	case s.levels.has(gateway.LevelRule):
		return gateway.LevelRule, gateway.LevelRule
	case s.levels.has(gateway.LevelRoute) || s.levels.has(gateway.LevelRouteNamespace):
		return gateway.LevelRoute, gateway.LevelRoute
	case s.levels.has(gateway.LevelListener) || s.levels.has(gateway.LevelListenerSet):
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
	p.GatewayNamespace = p.Gateway != nil && s.levels.has(gateway.LevelGatewayNamespace)
	p.ServiceNamespace = s.levels.has(gateway.LevelServiceNamespace) && !sameNamespace(p)
	p.RouteNamespace = s.levels.has(gateway.LevelRouteNamespace)
	return p
}

// sameNamespace reports whether the namespace of a service is already on the path, as that
// of its waypoint.
func sameNamespace(p gateway.Path) bool {
	return p.GatewayNamespace && p.Service != nil && p.Service.Namespace == p.Gateway.Namespace
}
