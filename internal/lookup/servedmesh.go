package lookup

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// inMesh returns where the request of a client in the mesh goes.
func (f *finder) inMesh(q *gateway.Request, client string) (place, error) {
	service, err := f.serviceOf(q.Host, client)
	if err != nil {
		return place{}, err
	}
	path := gateway.Path{Service: service, Port: q.Port, Rule: -1}
	if len(service.Ports) > 0 && !service.HasPort(q.Port) {
		message := fmt.Sprintf("%s has no port %d; set %s to one of %s", service.Ref(), q.Port, f.Names.Port, portsText(service))
		return place{at: api.RequestAt{Path: path.Elements(), Message: message}, path: path}, nil
	}
	answer := func(q *gateway.Request, r gateway.Reading) gateway.MeshAnswer {
		return gateway.AnswerInMesh(q, service, client, f.view.RoutesOf(service.Ref()), r)
	}
	a := answer(q, gateway.Reading{})
	if a.Consumer {
		path.Client = client
	}
	if a.Route != nil {
		path.Route, path.Rule = a.Route, a.Rule
	}
	at := api.RequestAt{Path: path.Elements(), Served: a.Route != nil, Match: a.MatchText()}
	switch {
	case a.Route != nil:
	case len(a.Attached) == 0:
		at.Message = fmt.Sprintf("no route has %s as a parent for clients in namespace %s: the mesh forwards the request by its own rules; attach a route to the Service", service.Ref(), client)
	default:
		at.Message = fmt.Sprintf("no rule of %s matches the request, and the mesh rejects it; change its path, method, headers or query, or add a rule", routeNames(a.Attached))
	}
	var assumed assumptions
	if a.Consumer && a.Producers {
		assumed.add(api.AssumeConsumerRoutes, "the routes of namespace %s replace those of namespace %s for its clients; Gateway API leaves their relationship open", client, service.Namespace)
	}
	assumeRoutes(&assumed, &a.Answer, q, func(q *gateway.Request, r gateway.Reading) gateway.Served { return answer(q, r).Served })
	at.Assumptions = assumed
	if f.Explain {
		at.Candidates = candidatesOf(a.Candidates)
	}
	return place{at, path, a.Attached}, nil
}

// serviceOf returns the Service that a client in a namespace means by a host.
func (f *finder) serviceOf(host, client string) (*gateway.Service, error) {
	name, rest, _ := strings.Cut(host, ".")
	namespace, domain, _ := strings.Cut(rest, ".")
	if namespace == "" {
		namespace = client
	}
	if domain != "" && domain != "svc" && !strings.HasPrefix(domain, "svc.") {
		return nil, fmt.Errorf("invalid %s: host %q must be that of a Service with %s: NAME, NAME.NAMESPACE or NAME.NAMESPACE.svc.cluster.local", f.Names.Line, host, f.Names.ClientNamespace)
	}
	return named[*gateway.Service](f, (&gateway.Service{Namespace: namespace, Name: name}).Ref())
}

func portsText(s *gateway.Service) string {
	var ports []string
	for _, p := range s.Ports {
		if text := fmt.Sprint(p.Number); !slices.Contains(ports, text) {
			ports = append(ports, text)
		}
	}
	return strings.Join(ports, ", ")
}
