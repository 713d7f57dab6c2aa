package gateway

import (
	"strconv"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Path is one chain from a root to a leaf. It starts at a gateway, or in a mesh
// at the Service that is the route's parent, or is a single Virtual element;
// it ends where its kind's paths end.
type Path struct {
	// Gateway, and Set and Listener as far as the path has them. On a path of a Service it
	// is the waypoint that its requests go through.
	Gateway  *Gateway
	Set      *ListenerSet
	Listener *Listener
	// Service that is the parent, and its Port where a policy targets a single port
	// or the route names one.
	Service *Service
	Port    int32
	// Client is the namespace of the clients, on the paths of consumers.
	Client string
	Route  *Route
	// Rule in Route.Rules, or -1.
	Rule int
	// Backend is nil where the path ends above.
	Backend *Backend
	// Member is the item of a route's list, where policies control fields of single
	// items.
	Member string
	// Virtual is a target for which no object exists.
	Virtual *api.Ref
	// GatewayNamespace, ServiceNamespace and RouteNamespace are set if these are
	// levels of the path.
	GatewayNamespace, ServiceNamespace, RouteNamespace bool
}

// ID identifies a path across versions of its objects. It does not have what labels and
// fields decide: the class of a gateway, the waypoint of a Service.
type ID struct {
	GatewayNamespace, Gateway         string
	SetKind, SetNamespace, Set        string
	Listener                          string
	ServiceNamespace, Service, Client string
	Port                              int32
	RouteKind, RouteNamespace, Route  string
	Rule                              int
	Backend                           Backend
	Member                            string
	Virtual                           api.Ref
}

// ID returns the identity of the path. A rule's is its position.
func (p Path) ID() ID {
	id := ID{Port: p.Port, Client: p.Client, Rule: p.Rule, Member: p.Member}
	if p.Gateway != nil && p.Service == nil {
		id.GatewayNamespace, id.Gateway = p.Gateway.Namespace, p.Gateway.Name
	}
	if p.Set != nil {
		id.SetKind, id.SetNamespace, id.Set = p.Set.Ref().Kind, p.Set.Namespace, p.Set.Name
	}
	if p.Listener != nil {
		id.Listener = p.Listener.Name
	}
	if p.Service != nil {
		id.ServiceNamespace, id.Service = p.Service.Namespace, p.Service.Name
	}
	if p.Route != nil {
		id.RouteKind, id.RouteNamespace, id.Route = p.Route.Kind, p.Route.Namespace, p.Route.Name
	}
	if p.Backend != nil {
		id.Backend = *p.Backend
	}
	if p.Virtual != nil {
		id.Virtual = *p.Virtual
	}
	return id
}

// SameButRule reports whether the IDs of two paths are equal, except for the rule. It
// is much faster than comparing the IDs: paths mostly share their objects.
func (p *Path) SameButRule(o *Path) bool {
	return sameName(p.Listener, o.Listener) && sameRef(p.Set, o.Set) && sameRef(p.Route, o.Route) && sameRef(p.Gateway, o.Gateway) &&
		sameValue(p.Backend, o.Backend) && sameRef(p.Service, o.Service) && sameValue(p.Virtual, o.Virtual) &&
		p.Port == o.Port && p.Client == o.Client && p.Member == o.Member
}

// sameName reports whether two listeners are both nil or have the same name.
func sameName(a, b *Listener) bool { return a == b || a != nil && b != nil && a.Name == b.Name }

// sameValue reports whether two pointers are both nil or point to equal values.
func sameValue[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Namespace returns the namespace of the path's route, or if it has none, of its
// service, listener set or gateway.
func (p Path) Namespace() string {
	switch {
	case p.Route != nil:
		return p.Route.Namespace
	case p.Service != nil:
		return p.Service.Namespace
	case p.Set != nil:
		return p.Set.Namespace
	case p.Gateway != nil:
		return p.Gateway.Namespace
	case p.Virtual != nil:
		return p.Virtual.Namespace
	default:
		return ""
	}
}

// Elements returns the path as in the JSON output.
func (p Path) Elements() []api.PathElement {
	out := make([]api.PathElement, 0, 8)
	for l := LevelGatewayClass; l < LevelObject; l++ {
		if e, ok := p.elementAt(l); ok {
			out = append(out, e)
		}
	}
	return out
}

// Element returns the element of the path at a level. A level without an element of
// its own has that of the next level above with one.
func (p Path) Element(l Level) api.PathElement {
	if l == LevelMesh {
		return api.PathElement{Kind: KindMesh}
	}
	switch l {
	case LevelServicePort:
		l = LevelService
	case LevelBackendPort:
		l = LevelBackend
	case LevelObject:
		l = LevelRule
	default:
	}
	for ; l > LevelMesh; l-- {
		if e, ok := p.elementAt(l); ok {
			return e
		}
	}
	return api.PathElement{Kind: KindMesh}
}

// elementAt returns the element of a level, if the path has one.
func (p Path) elementAt(l Level) (e api.PathElement, ok bool) {
	switch l {
	case LevelGatewayClass, LevelGatewayNamespace, LevelGateway, LevelListenerSet, LevelListener:
		if p.Gateway != nil {
			return p.atGateway(l)
		}
	case LevelServiceNamespace, LevelService:
		if p.Service != nil {
			return p.atService(l)
		}
	case LevelRouteNamespace, LevelRoute, LevelRule:
		if p.Route != nil {
			return p.atRoute(l)
		}
	case LevelBackend:
		if p.Backend != nil {
			return p.backend(), true
		}
		if p.Virtual != nil {
			return api.PathElement{Kind: p.Virtual.Kind, Namespace: p.Virtual.Namespace, Name: p.Virtual.Name}, true
		}
	default:
	}
	return api.PathElement{}, false
}

func (p Path) atGateway(l Level) (e api.PathElement, ok bool) {
	g := p.Gateway
	switch {
	case l == LevelGatewayClass:
		return api.PathElement{Kind: KindGatewayClass, Name: g.Class}, true
	case l == LevelGatewayNamespace && p.GatewayNamespace:
		return api.PathElement{Kind: KindNamespace, Name: g.Namespace}, true
	case l == LevelGateway:
		return api.PathElement{Kind: KindGateway, Namespace: g.Namespace, Name: g.Name}, true
	case l == LevelListenerSet && p.Set != nil:
		return api.PathElement{Kind: p.Set.Ref().Kind, Namespace: p.Set.Namespace, Name: p.Set.Name}, true
	case l == LevelListener && p.Listener != nil:
		e = api.PathElement{Kind: KindListener, Namespace: g.Namespace, Name: g.Name, Section: p.Listener.Name}
		if p.Set != nil {
			e.Namespace, e.Name = p.Set.Namespace, p.Set.Name
		}
		return e, true
	}
	return e, false
}

func (p Path) atService(l Level) (e api.PathElement, ok bool) {
	s := p.Service
	switch {
	case l == LevelServiceNamespace && p.ServiceNamespace:
		return api.PathElement{Kind: KindNamespace, Name: s.Namespace}, true
	case l == LevelService:
		return api.PathElement{Kind: KindService, Namespace: s.Namespace, Name: s.Name, Section: formatPort(p.Port), Client: p.Client}, true
	}
	return e, false
}

func (p Path) atRoute(l Level) (e api.PathElement, ok bool) {
	r := p.Route
	switch {
	case l == LevelRouteNamespace && p.RouteNamespace:
		return api.PathElement{Kind: KindNamespace, Name: r.Namespace}, true
	case l == LevelRoute:
		return api.PathElement{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, true
	case l == LevelRule && p.Rule >= 0:
		index := p.Rule
		return api.PathElement{
			Kind: r.Kind + "Rule", Namespace: r.Namespace, Name: r.Name,
			Section: r.RuleName(p.Rule), Index: &index, Member: p.Member,
		}, true
	}
	return e, false
}

func (p Path) backend() api.PathElement {
	b := p.Backend.Object
	return api.PathElement{Kind: b.Kind, Namespace: b.Namespace, Name: b.Name, Section: formatPort(p.Backend.Port)}
}

func formatPort(port int32) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(int(port))
}
