package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// serveExec starts an API server that only executes commands in pods: the tests of meshes
// send their requests so.
func serveExec(t *testing.T, s *server) (*rest.Config, kubernetes.Interface, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/pods/{name}/exec", s.exec)
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	config := &rest.Config{Host: h.URL}
	clients, err := kubernetes.NewForConfig(config)
	return config, clients, err
}

// exec runs the client of the echo server in a pod.
func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	output, err := s.runClient(r.PathValue("namespace"), r.URL.Query()["command"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return // the handshake answered
	}
	const all = 3 // errors, stdout and stderr
	streams := make(chan httpstream.Stream, all)
	c := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if c == nil {
		return
	}
	defer c.Close()
	for range all {
		stream := <-streams
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeStdout {
			fmt.Fprint(stream, output)
		}
		stream.Close()
	}
	select {
	case <-c.CloseChan():
	case <-time.After(limits().RequestTimeout):
	}
}

// runClient sends the requests that a command asks for, from a pod in a namespace, and
// returns the output.
func (s *server) runClient(namespace string, command []string) (string, error) {
	in := roundtripper.Request{Method: http.MethodGet, Headers: make(map[string][]string)}
	count := 1
	for i := 1; i < len(command); i++ {
		var err error
		name, value, _ := strings.Cut(command[i], "=")
		switch {
		case command[i] == "-H":
			i++
			name, value, _ := strings.Cut(command[i], ":")
			in.Headers[name] = []string{value}
		case name == "--method":
			in.Method = value
		case name == "--count":
			count, err = strconv.Atoi(value)
		default:
			var u *url.URL
			if u, err = url.Parse(command[i]); err == nil {
				in.URL = *u
			}
		}
		if err != nil {
			return "", err
		}
	}
	var out strings.Builder
	for range count {
		e, err := s.sendInMesh(namespace, &in)
		if err != nil {
			return "", err
		}
		e.print(&out)
	}
	return out.String(), nil
}

// print prints a response as the client of the echo server does.
func (e *exchange) print(out *strings.Builder) {
	fmt.Fprintf(out, "StatusCode=%d\n", e.status)
	if e.endpoint != nil {
		fmt.Fprintf(out, "Hostname=%s\nHost=%s\nURL=%s\n", e.endpoint.pod.Name, e.host, e.path)
	}
	for name, values := range e.request {
		fmt.Fprintf(out, "RequestHeader=%s:%s\n", name, strings.Join(values, ","))
	}
	for name, values := range e.response {
		fmt.Fprintf(out, "ResponseHeader=%s:%s\n", name, strings.Join(values, ","))
	}
	out.WriteString("\n")
}

// sendInMesh sends a request from a namespace to a service, or straight to a pod.
func (s *server) sendInMesh(from string, in *roundtripper.Request) (*exchange, error) {
	v := s.cluster.now()
	port := defaultPorts[in.URL.Scheme]
	if p := in.URL.Port(); p != "" {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil {
			return nil, err
		}
		port = int32(n)
	}
	in.Host = in.URL.Hostname()
	if host := in.Headers["Host"]; host != nil {
		in.Host = host[0]
	}
	q := requestOf(in, port)
	if q.GRPC = in.URL.Scheme == "grpc"; q.GRPC {
		q.Path = "/proto.EchoTestService/Echo"
	}
	e := newExchange(in, q)
	if net.ParseIP(in.URL.Hostname()) != nil {
		e.reach(s.cluster.podAt(in.URL.Hostname()))
		return e, nil
	}
	name, namespace, _ := strings.Cut(in.URL.Hostname(), ".")
	service, ok := v.Get((&gateway.Service{Namespace: cmp.Or(namespace, from), Name: name}).Ref()).(*gateway.Service)
	if !ok {
		return nil, fmt.Errorf("no service %s", in.URL.Host)
	}
	routes, g, err := asGateway(v, service, port, from)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		e.reach(&endpoint{pod: s.cluster.pod(context.Background(), service.Ref())})
		return e, nil
	}
	served := s.route(routes, g, q)
	if served.Route == nil {
		e.status = http.StatusNotFound
		return e, nil
	}
	return s.answer(v, in, q, served)
}

// podAt returns the pod with an address.
func (c *cluster) podAt(ip string) *endpoint {
	var all corev1.PodList
	if err := c.List(context.Background(), &all); err != nil {
		return nil
	}
	for i := range all.Items {
		if all.Items[i].Status.PodIP == ip {
			return &endpoint{pod: &all.Items[i]}
		}
	}
	return nil
}

// asGateway returns the routes on a port of a service as those of a gateway with one
// listener, nil if there is none: the router knows gateways only. Of the routes in other
// namespaces, only those in the namespace of the client count, before all others
// (SEMANTICS section 7).
func asGateway(v *snapshot.View, s *gateway.Service, port int32, from string) (*snapshot.View, *gateway.Gateway, error) {
	var producers, consumers []*gateway.Route
	for r := range v.RoutesOf(s.Ref()) {
		ports := r.PortsOf(s)
		switch {
		case !slices.Contains(ports, port) && !slices.Contains(ports, 0):
		case r.Namespace == s.Namespace:
			producers = append(producers, r)
		case r.Namespace == from:
			consumers = append(consumers, r)
		}
	}
	if len(consumers) > 0 {
		producers = consumers
	}
	if len(producers) == 0 {
		return nil, nil, nil
	}
	g := &gateway.Gateway{Namespace: s.Namespace, Name: s.Name, Listeners: []gateway.Listener{{
		Name: "port", Port: port, Protocol: "HTTP", Namespaces: gateway.NamespaceRule{All: true}, AnyKind: true,
	}}}
	out := (&snapshot.View{}).With(snapshot.Put(g))
	for _, r := range producers {
		moved, err := withParent(r, g)
		if err != nil {
			return nil, nil, err
		}
		out = out.With(snapshot.Put(moved))
	}
	return out, g, nil
}

// withParent returns a route with a gateway as its only parent. In a mesh, hostnames do
// not count.
func withParent(r *gateway.Route, g *gateway.Gateway) (*gateway.Route, error) {
	spec, ok := r.Spec().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no spec", r.Ref())
	}
	spec = maps.Clone(spec)
	delete(spec, "hostnames")
	spec["parentRefs"] = []any{map[string]any{"namespace": g.Namespace, "name": g.Name}}
	return withSpec(r, spec)
}
