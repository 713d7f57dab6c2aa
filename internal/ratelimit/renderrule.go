package ratelimit

import (
	"regexp"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

const (
	anyRequest     = "/*"
	wildcardSuffix = "*"
	regexPrefix    = "~"
)

// gatewayRules returns an entry for each match of a rule, without hosts.
func gatewayRules(r *gateway.Route, rule int) []api.GatewayRule {
	var out []api.GatewayRule
	for _, m := range r.HTTPMatches(rule) {
		out = append(out, httpRule(&m))
	}
	for _, m := range r.GRPCMatches(rule) {
		out = append(out, grpcRule(&m))
	}
	if len(out) == 0 { // every request
		out = []api.GatewayRule{{Paths: []string{anyRequest}}}
	}
	return out
}

func httpRule(m *gatewayv1.HTTPRouteMatch) api.GatewayRule {
	out := api.GatewayRule{Paths: []string{anyRequest}}
	if m.Path != nil {
		out.Paths = []string{pathPattern(pathType(m.Path), pathValue(m.Path))}
	}
	if m.Method != nil {
		out.Methods = []string{string(*m.Method)}
	}
	seen := make(map[string]bool)
	for i := range m.Headers {
		h := &m.Headers[i]
		out.Headers = addValue(out.Headers, seen, strings.ToLower(string(h.Name)), matchValue(h.Name, valueOr(h.Type, gatewayv1.HeaderMatchExact), h.Value))
	}
	seen = make(map[string]bool)
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		out.QueryParams = addValue(out.QueryParams, seen, string(q.Name), matchValue(q.Name, valueOr(q.Type, gatewayv1.QueryParamMatchExact), q.Value))
	}
	return out
}

func pathPattern(kind, value string) string {
	switch gatewayv1.PathMatchType(kind) {
	case gatewayv1.PathMatchExact:
		return value
	case gatewayv1.PathMatchRegularExpression:
		return regexPrefix + value
	default:
		return value + wildcardSuffix
	}
}

// addValue adds a value unless there is one of that name: the first counts.
func addValue(to []api.GatewayValue, seen map[string]bool, name string, value api.GatewayValue) []api.GatewayValue {
	if seen[name] {
		return to
	}
	seen[name] = true
	return append(to, value)
}

func matchValue(name gatewayv1.HTTPHeaderName, kind, value string) api.GatewayValue {
	out := api.GatewayValue{Name: string(name), Value: value}
	if kind != string(gatewayv1.HeaderMatchExact) {
		out.Type = kind
	}
	return out
}

// grpcRule returns the HTTP/2 path of the calls that match: /<service>/<method>.
func grpcRule(m *gatewayv1.GRPCRouteMatch) api.GatewayRule {
	out := api.GatewayRule{Paths: []string{grpcPath(m.Method)}}
	seen := make(map[string]bool)
	for i := range m.Headers {
		h := &m.Headers[i]
		out.Headers = addValue(out.Headers, seen, strings.ToLower(string(h.Name)),
			matchValue(gatewayv1.HTTPHeaderName(h.Name), valueOr(h.Type, gatewayv1.GRPCHeaderMatchExact), h.Value))
	}
	return out
}

func grpcPath(m *gatewayv1.GRPCMethodMatch) string {
	if m == nil {
		return anyRequest
	}
	service, method := valueOr(m.Service, ""), valueOr(m.Method, "")
	exact := valueOr(m.Type, gatewayv1.GRPCMethodMatchExact) == string(gatewayv1.GRPCMethodMatchExact)
	switch {
	case service == "" && method == "":
		return anyRequest
	case exact && method == "":
		return "/" + service + "/" + wildcardSuffix
	case exact && service != "":
		return "/" + service + "/" + method
	case exact:
		return regexPrefix + "/[^/]+/" + regexp.QuoteMeta(method)
	default:
		return regexPrefix + "/" + grpcPart(service) + "/" + grpcPart(method)
	}
}

// grpcPart returns the expression for a segment of the path.
func grpcPart(pattern string) string {
	if pattern == "" {
		return "[^/]+"
	}
	return "(?:" + pattern + ")"
}
