package gateway

import (
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

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
		ptr.Equal(p.Backend, o.Backend) && sameRef(p.Service, o.Service) && ptr.Equal(p.Virtual, o.Virtual) &&
		p.Port == o.Port && p.Client == o.Client && p.Member == o.Member
}

// sameName reports whether two listeners are both nil or have the same name.
func sameName(a, b *Listener) bool { return a == b || a != nil && b != nil && a.Name == b.Name }

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

// PathObject is an object that a path goes through.
type PathObject struct {
	api.Ref
	// Labels of the object, nil for those that a path does not have.
	Labels labels.Set
	// Level is its own, InNamespace that of its namespace, or its own if that is none.
	Level, InNamespace Level
	// has reports whether the path goes through a section of the object by its name, nil for
	// one whose sections are ports.
	has func(section string) bool
	// port is the number of its port, 0 if the path goes through all.
	port int32
}

// Has reports whether the path goes through a section of the object, whose ports have names.
func (o *PathObject) Has(section string, portOf func(service api.Ref, name string) int32) bool {
	if o.has != nil || o.port == 0 {
		return o.has == nil || o.has(section)
	}
	n, err := strconv.ParseInt(section, 10, 32)
	return err == nil && int32(n) == o.port || err != nil && portOf(o.Ref, section) == o.port
}

// Objects yields the objects of the path, from the root on.
func (p *Path) Objects(yield func(PathObject) bool) {
	listener := func(name string) bool { return p.Listener != nil && p.Listener.Name == name }
	own := func(name string) bool { return p.Set == nil && listener(name) }
	rule := func(name string) bool { return p.Rule >= 0 && p.Route.RuleAt(name, p.Rule) }
	g, set, s, r, b := p.Gateway, p.Set, p.Service, p.Route, p.Backend
	_ = (g == nil || yield(PathObject{Ref: (&Class{Name: g.Class}).Ref(), Level: LevelGatewayClass, InNamespace: LevelGatewayClass})) &&
		(g == nil || yield(PathObject{g.Ref(), g.Labels, LevelGateway, LevelGatewayNamespace, own, 0})) &&
		(set == nil || yield(PathObject{set.Ref(), set.Labels, LevelListenerSet, LevelListenerSet, listener, 0})) &&
		(s == nil || yield(PathObject{s.Ref(), s.Labels, LevelService, LevelServiceNamespace, nil, p.Port})) &&
		(r == nil || yield(PathObject{r.Ref(), r.Labels, LevelRoute, LevelRouteNamespace, rule, 0})) &&
		(b == nil || yield(PathObject{Ref: b.Object, Level: LevelBackend, InNamespace: LevelBackend, port: b.Port})) &&
		(p.Virtual == nil || yield(PathObject{Ref: *p.Virtual, Level: LevelBackend, InNamespace: LevelBackend}))
}

// Elements returns the path as in the JSON output.
func (p Path) Elements() []api.PathElement {
	all := p.leveled()
	out := make([]api.PathElement, len(all))
	for i := range all {
		out[i] = all[i].PathElement
	}
	return out
}

// Element returns the element of the path at a level. A level without an element of
// its own has that of the next level above with one.
func (p Path) Element(l Level) api.PathElement {
	if l == LevelObject {
		l = LevelRule
	}
	out := api.PathElement{Kind: KindMesh}
	for _, e := range p.leveled() {
		if e.level <= l {
			out = e.PathElement
		}
	}
	return out
}

// leveledElement is an element of a path with its level.
type leveledElement struct {
	level Level
	api.PathElement
}

// leveled returns the elements of the path, the root first.
func (p Path) leveled() []leveledElement {
	out := p.entrance(make([]leveledElement, 0, 8))
	if r := p.Route; r != nil {
		if p.RouteNamespace {
			out = append(out, leveledElement{LevelRouteNamespace, api.PathElement{Kind: KindNamespace, Name: r.Namespace}})
		}
		out = append(out, leveledElement{LevelRoute, api.PathElement{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}})
		if p.Rule >= 0 {
			out = append(out, leveledElement{LevelRule, api.PathElement{
				Kind: r.Kind + "Rule", Namespace: r.Namespace, Name: r.Name,
				Section: r.RuleName(p.Rule), Index: new(p.Rule), Member: p.Member,
			}})
		}
	}
	switch {
	case p.Backend != nil:
		b := p.Backend.Object
		out = append(out, leveledElement{LevelBackend, api.PathElement{Kind: b.Kind, Namespace: b.Namespace, Name: b.Name, Section: formatPort(p.Backend.Port)}})
	case p.Virtual != nil:
		out = append(out, leveledElement{LevelBackend, api.PathElement{Kind: p.Virtual.Kind, Namespace: p.Virtual.Namespace, Name: p.Virtual.Name}})
	}
	return out
}

// entrance appends the elements above the route.
func (p Path) entrance(out []leveledElement) []leveledElement {
	add := func(l Level, e api.PathElement) { out = append(out, leveledElement{l, e}) }
	if g := p.Gateway; g != nil {
		add(LevelGatewayClass, api.PathElement{Kind: KindGatewayClass, Name: g.Class})
		if p.GatewayNamespace {
			add(LevelGatewayNamespace, api.PathElement{Kind: KindNamespace, Name: g.Namespace})
		}
		of := api.PathElement{Kind: KindGateway, Namespace: g.Namespace, Name: g.Name}
		add(LevelGateway, of)
		if s := p.Set; s != nil {
			of = api.PathElement{Kind: s.Ref().Kind, Namespace: s.Namespace, Name: s.Name}
			add(LevelListenerSet, of)
		}
		if p.Listener != nil {
			add(LevelListener, api.PathElement{Kind: KindListener, Namespace: of.Namespace, Name: of.Name, Section: p.Listener.Name})
		}
	}
	if s := p.Service; s != nil {
		if p.ServiceNamespace {
			add(LevelServiceNamespace, api.PathElement{Kind: KindNamespace, Name: s.Namespace})
		}
		add(LevelService, api.PathElement{Kind: KindService, Namespace: s.Namespace, Name: s.Name, Section: formatPort(p.Port), Client: p.Client})
	}
	return out
}

func formatPort(port int32) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(int(port))
}
