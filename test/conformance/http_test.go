package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// CaptureRoundTrip implements roundtripper.RoundTripper: it routes the request, and
// answers as the backend would.
func (s *server) CaptureRoundTrip(in roundtripper.Request) (*roundtripper.CapturedRequest, *roundtripper.CapturedResponse, error) {
	v := s.cluster.now()
	g, port, err := s.cluster.net.gateway(v, in.URL.Host, defaultPorts[in.URL.Scheme])
	if err != nil {
		return nil, nil, err
	}
	q := requestOf(&in, port)
	if s.misdirected(v, g, q) {
		return &roundtripper.CapturedRequest{}, &roundtripper.CapturedResponse{StatusCode: http.StatusMisdirectedRequest}, nil
	}
	served := s.route(v, g, q)
	switch {
	case served.Listener == nil && q.Transport == gateway.TransportTLS:
		return nil, nil, fmt.Errorf("no listener of %s accepts %s", g.Ref(), q)
	case served.Route == nil:
		return &roundtripper.CapturedRequest{}, &roundtripper.CapturedResponse{StatusCode: http.StatusNotFound}, nil
	}
	e, err := s.answer(v, &in, q, served)
	if err != nil {
		return nil, nil, err
	}
	request, response := e.captured()
	return request, response, nil
}

// answer returns the response of the rule that serves a request.
func (s *server) answer(v *snapshot.View, in *roundtripper.Request, q *gateway.Request, served gateway.Served) (*exchange, error) {
	r, err := ruleOf(served.Route, served.Rule)
	if err != nil {
		return nil, err
	}
	e := newExchange(in, q)
	if served.Route.Kind == gateway.KindHTTPRoute {
		e.prefix = served.Match().Path
	}
	e.filter(r.Filters)
	if e.redirect == nil {
		e.reach(s.endpointOf(v, served, r))
	}
	return e, nil
}

// misdirected reports whether a request came by a connection whose server name is
// another listener's.
func (s *server) misdirected(v *snapshot.View, g *gateway.Gateway, q *gateway.Request) bool {
	if q.ServerName == "" || q.ServerName == q.Host {
		return false
	}
	router := gateway.NewRouter(listenersOf(v, g), v, gateway.Reading{})
	byHost := *q
	byHost.ServerName = q.Host
	return router.Route(q).Listener != router.Route(&byHost).Listener
}

var defaultPorts = map[string]int32{"http": 80, "https": 443}

func requestOf(in *roundtripper.Request, port int32) *gateway.Request {
	q := &gateway.Request{
		Transport: gateway.TransportHTTP, Port: port, Host: strings.ToLower(hostOnly(in.Host)),
		Method: in.Method, Path: in.URL.EscapedPath(),
	}
	if in.Host == "" {
		q.Host = in.URL.Hostname()
	}
	if in.URL.Scheme == "https" {
		q.Transport, q.ServerName = gateway.TransportTLS, in.ServerName
	}
	if q.Path == "" {
		q.Path = "/"
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		q.Headers = append(q.Headers, gateway.Field{Name: name, Value: in.Headers[name][0]})
	}
	for pair := range strings.SplitSeq(in.URL.RawQuery, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			name, _ = url.QueryUnescape(name)
			value, _ = url.QueryUnescape(value)
			q.Query = append(q.Query, gateway.Field{Name: name, Value: value})
		}
	}
	return q
}

// exchange is a request on its way to a backend, and the response.
type exchange struct {
	scheme, host, path, query, method, sni, protocol string
	port                                             int32
	request, response                                http.Header
	prefix                                           *gatewayv1.HTTPPathMatch // that the request met
	status                                           int
	redirect                                         *roundtripper.RedirectRequest
	endpoint                                         *endpoint
	after                                            []gatewayv1.HTTPHeaderFilter // for the response
}

func newExchange(in *roundtripper.Request, q *gateway.Request) *exchange {
	e := &exchange{
		scheme: in.URL.Scheme, host: in.Host, path: q.Path, query: in.URL.RawQuery, method: q.Method, sni: in.ServerName,
		port: q.Port, protocol: "HTTP/1.1", request: http.Header{}, response: http.Header{}, status: http.StatusOK,
	}
	if e.host == "" {
		e.host = in.URL.Host
	}
	if in.Protocol == roundtripper.H2Protocol || in.Protocol == roundtripper.H2CPriorKnowledgeProtocol {
		e.protocol = "HTTP/2.0"
	}
	for name, values := range in.Headers {
		e.request.Set(name, values[0])
	}
	return e
}

// filter applies the filters of a rule or a backendRef.
func (e *exchange) filter(filters []gatewayv1.HTTPRouteFilter) {
	for i := range filters {
		switch f := &filters[i]; f.Type {
		case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
			modify(e.request, f.RequestHeaderModifier)
		case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
			e.after = append(e.after, *f.ResponseHeaderModifier)
		case gatewayv1.HTTPRouteFilterURLRewrite:
			if f.URLRewrite.Hostname != nil {
				e.host = string(*f.URLRewrite.Hostname)
			}
			e.path = e.replacePath(f.URLRewrite.Path)
		case gatewayv1.HTTPRouteFilterRequestRedirect:
			e.redirectTo(f.RequestRedirect)
		default:
		}
	}
}

func modify(h http.Header, f *gatewayv1.HTTPHeaderFilter) {
	for _, set := range f.Set {
		h.Set(string(set.Name), set.Value)
	}
	for _, add := range f.Add {
		h.Add(string(add.Name), add.Value)
	}
	for _, name := range f.Remove {
		h.Del(name)
	}
}

// replacePath returns the path after a rewrite or a redirect.
func (e *exchange) replacePath(p *gatewayv1.HTTPPathModifier) string {
	switch {
	case p == nil:
		return e.path
	case p.ReplaceFullPath != nil:
		return *p.ReplaceFullPath
	default:
		rest := strings.TrimPrefix(e.path, strings.TrimRight(*e.prefix.Value, "/"))
		return cmp.Or(strings.TrimRight(*p.ReplacePrefixMatch, "/")+rest, "/")
	}
}

func (e *exchange) redirectTo(f *gatewayv1.HTTPRequestRedirectFilter) {
	e.status = http.StatusFound
	if f.StatusCode != nil {
		e.status = *f.StatusCode
	}
	to := &roundtripper.RedirectRequest{Scheme: e.scheme, Host: hostOnly(e.host), Path: e.replacePath(f.Path)}
	port := e.port
	if f.Scheme != nil {
		to.Scheme, port = *f.Scheme, defaultPorts[*f.Scheme]
	}
	if f.Hostname != nil {
		to.Host = string(*f.Hostname)
	}
	if f.Port != nil {
		port = *f.Port
	}
	if port != defaultPorts[to.Scheme] {
		to.Port = strconv.Itoa(int(port))
	}
	e.redirect = to
}

// reach has the request reach a backend, if one is available.
func (e *exchange) reach(to *endpoint) {
	if e.endpoint = to; to == nil {
		e.status = http.StatusInternalServerError
		return
	}
	e.filter(to.filters)
	for pair := range strings.SplitSeq(e.request.Get("X-Echo-Set-Header"), ",") {
		if name, value, ok := strings.Cut(pair, ":"); ok {
			e.response.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	for i := range e.after {
		modify(e.response, &e.after[i])
	}
}

func (e *exchange) captured() (*roundtripper.CapturedRequest, *roundtripper.CapturedResponse) {
	request := &roundtripper.CapturedRequest{
		Path: e.path, Host: e.host, Method: e.method, Protocol: e.protocol, Headers: e.request, TLS: roundtripper.TLS{ServerName: e.sni},
	}
	if e.query != "" {
		request.Path += "?" + e.query
	}
	if e.endpoint != nil {
		request.Namespace, request.Pod = e.endpoint.pod.Namespace, e.endpoint.pod.Name
	}
	return request, &roundtripper.CapturedResponse{
		StatusCode: e.status, Protocol: e.protocol, Headers: e.response, RedirectRequest: e.redirect,
	}
}
