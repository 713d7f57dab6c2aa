package gateway

import (
	"fmt"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// MatchText returns the match that a request meets for messages, such as
// "GET PathPrefix /toys with header x=1"; "" for routes without matches.
func (s Served) MatchText() string {
	if s.Route == nil {
		return ""
	}
	if all := s.Route.HTTPMatches(s.Rule); s.Match < len(all) {
		return HTTPMatchText(&all[s.Match])
	}
	if all := s.Route.GRPCMatches(s.Rule); s.Match < len(all) {
		return grpcMatchText(&all[s.Match])
	}
	if s.Route.Kind == KindGRPCRoute {
		return anyRequest
	}
	return ""
}

// anyRequest stands for a match without conditions.
const anyRequest = "any request"

// HTTPMatchText returns a match for messages.
func HTTPMatchText(m *gatewayv1.HTTPRouteMatch) string {
	var words, with []string
	if m.Method != nil {
		words = append(words, string(*m.Method))
	}
	if m.Path != nil {
		words = append(words, valueOr(m.Path.Type, gatewayv1.PathMatchPathPrefix)+" "+valueOr(m.Path.Value, "/"))
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		with = append(with, valueText("header", string(h.Name), valueOr(h.Type, gatewayv1.HeaderMatchExact), h.Value))
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		with = append(with, valueText("query parameter", string(q.Name), valueOr(q.Type, gatewayv1.QueryParamMatchExact), q.Value))
	}
	return matchText(words, with)
}

func grpcMatchText(m *gatewayv1.GRPCRouteMatch) string {
	var words, with []string
	if m.Method != nil && (m.Method.Service != nil || m.Method.Method != nil) {
		words = append(words, valueOr(m.Method.Type, gatewayv1.GRPCMethodMatchExact)+" /"+valueOr(m.Method.Service, "*")+"/"+valueOr(m.Method.Method, "*"))
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		with = append(with, valueText("header", string(h.Name), valueOr(h.Type, gatewayv1.GRPCHeaderMatchExact), h.Value))
	}
	return matchText(words, with)
}

func matchText(words, with []string) string {
	if len(words) == 0 {
		words = []string{anyRequest}
	}
	text := strings.Join(words, " ")
	if len(with) > 0 {
		text += " with " + strings.Join(with, " and ")
	}
	return text
}

func valueText(what, name, kind, value string) string {
	equals := "="
	if kind != string(gatewayv1.HeaderMatchExact) {
		equals = "~"
	}
	return fmt.Sprintf("%s %s%s%s", what, name, equals, value)
}

// valueOr returns the value of a field, or its default.
func valueOr[T ~string](field *T, def T) string {
	if field == nil {
		return string(def)
	}
	return string(*field)
}
