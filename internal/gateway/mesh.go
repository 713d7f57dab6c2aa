package gateway

import (
	"iter"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
)

// meshKinds are the kinds of routes that HTTP requests to a Service go through. The
// first one that has routes decides.
var meshKinds = []string{KindGRPCRoute, KindHTTPRoute, KindTCPRoute}

// MeshAnswer is where an HTTP request of a client goes in a mesh.
type MeshAnswer struct {
	Answer
	// Consumer is set if the routes are those of the client's namespace.
	Consumer bool
	// Producers reports whether the Service has routes in its own namespace, too.
	Producers bool
}

// AnswerInMesh returns where a request to a port of a Service goes (SEMANTICS section
// 7): to the routes of the client's namespace that have the Service as a parent, else to
// those of the Service's namespace. Their hostnames mean nothing in a mesh. The answer
// has no listener.
func AnswerInMesh(q *Request, s *Service, client string, routes iter.Seq[*Route], reading Reading) MeshAnswer {
	at, all := *q, slices.Collect(routes)
	at.Transport, at.Host, at.ServerName = TransportHTTP, s.host(), ""
	if len(s.Ports) == 0 {
		at.Port = 0
	}
	kinds := meshKindsOn(s, all)
	out := MeshAnswer{
		Consumer:  client != s.Namespace && len(kinds[meshPort{client, at.Port}]) > 0,
		Producers: len(kinds[meshPort{s.Namespace, at.Port}]) > 0,
	}
	if out.Consumer {
		at.Client = client
	}
	router := NewMeshRouter(s, []string{client}, all, reading)
	out.Answer = router.Answer(&at)
	ofAllKinds := router.sharing()
	out.Attached = ofAllKinds.attachedFor(&at, ofAllKinds.listenersFor(&at))
	out.Listener = nil
	for i := range out.Candidates {
		out.Candidates[i].Listener, out.Candidates[i].Hostname = nil, ""
	}
	return out
}

// ServesMesh reports whether routes of a kind serve HTTP requests to a Service.
func ServesMesh(kind string) bool { return slices.Contains(meshKinds, kind) }

// NewMeshRouter returns a router for the requests to a Service, given the routes that have
// it as a parent. Each port is a listener, for clients in namespaces without routes of
// their own and for those in each of the namespaces of clients. It decides as AnswerInMesh
// does.
func NewMeshRouter(s *Service, clients []string, routes []*Route, reading Reading) *Router {
	host := s.host()
	kinds := meshKindsOn(s, routes)
	var listeners []ListenerMatch
	for _, port := range s.portNumbers() {
		for _, client := range append([]string{""}, clients...) {
			own := kinds[meshPort{client, port}]
			l := &Listener{Name: strconv.Itoa(int(port)), Hostname: host, Port: port, Protocol: "HTTP", Kinds: own}
			if len(own) == 0 {
				l.Kinds, l.Namespaces.Same = kinds[meshPort{s.Namespace, port}], true
			}
			listeners = append(listeners, ListenerMatch{Service: s, Client: client, Listener: l})
		}
	}
	return NewRouter(listeners, meshRoutes{host, routes}, reading)
}

// host returns the host of requests to the service.
func (s *Service) host() string { return s.Name + "." + s.Namespace }

// portNumbers returns the ports of the service, each once, or only 0 if it has none.
func (s *Service) portNumbers() []int32 {
	out := []int32{0}[:1-min(len(s.Ports), 1)]
	for _, p := range s.Ports {
		if !slices.Contains(out, p.Number) {
			out = append(out, p.Number)
		}
	}
	return out
}

// meshPort is a port of a Service for the routes of a namespace.
type meshPort struct {
	namespace string
	port      int32
}

// meshKindsOn returns the kinds of the routes on each port of a Service, by namespace, in
// the order of meshKinds.
func meshKindsOn(s *Service, routes []*Route) map[meshPort][]string {
	out := make(map[meshPort][]string)
	for _, kind := range meshKinds {
		for _, r := range routes {
			if r.Kind != kind {
				continue
			}
			for _, port := range s.portNumbers() {
				at := meshPort{r.Namespace, port}
				if r.onPort(s, port) && !slices.Contains(out[at], kind) {
					out[at] = append(out[at], kind)
				}
			}
		}
	}
	return out
}

// meshRoutes are the routes of a Service, all of them on its hostname.
type meshRoutes struct {
	host   string
	routes []*Route
}

// RoutesAt yields all routes for the hostname of the Service.
func (m meshRoutes) RoutesAt(_ api.Ref, hostname, _ string) iter.Seq[*Route] {
	if hostname != m.host {
		return slices.Values[[]*Route](nil)
	}
	return slices.Values(m.routes)
}

// RoutesOf yields all routes.
func (m meshRoutes) RoutesOf(api.Ref) iter.Seq[*Route] { return slices.Values(m.routes) }

// NamespaceLabels returns nothing: no listener of a mesh selects by labels.
func (m meshRoutes) NamespaceLabels(string) labels.Set { return nil }
