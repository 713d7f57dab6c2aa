package gateway

import (
	"iter"
	"slices"
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
	var own, producers []*Route
	for r := range routes {
		ports := r.PortsOf(s)
		switch {
		case !slices.Contains(ports, 0) && !slices.Contains(ports, q.Port), !slices.Contains(meshKinds, r.Kind):
		case r.Namespace == s.Namespace:
			producers = append(producers, r)
		case r.Namespace == client:
			own = append(own, r)
		}
	}
	out := MeshAnswer{Consumer: len(own) > 0, Producers: len(producers) > 0}
	if !out.Consumer {
		own = producers
	}
	pseudo := &ListenerMatch{Gateway: &Gateway{}, Listener: &Listener{}}
	for _, r := range own {
		out.Attached = append(out.Attached, Attached{Listener: pseudo, Route: r})
	}
	sortAttached(out.Attached)
	out.serve(q, reading)
	return out
}

// serve sets where the request goes among the attached routes of the first kind of
// meshKinds, and the candidates.
func (a *MeshAnswer) serve(q *Request, reading Reading) {
	all := a.Attached
	for _, kind := range meshKinds {
		a.Attached = slices.DeleteFunc(slices.Clone(all), func(on Attached) bool { return on.Route.Kind != kind })
		if len(a.Attached) > 0 {
			break
		}
	}
	a.addCandidates(q, reading)
	a.Attached = all
	if len(a.Candidates) > 0 {
		a.Served = a.Candidates[0].Served
	}
	a.Listener = nil
	for i := range a.Candidates {
		a.Candidates[i].Listener = nil
	}
	for i := range a.Attached {
		a.Attached[i].Listener = nil
	}
}
