package ratelimit

import (
	"cmp"
	"regexp"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

const (
	anyRequest     = "/*"
	wildcardSuffix = "*"
	regexPrefix    = "~"
)

// gatewayRule returns the entry for a match of a rule, for hosts.
func gatewayRule(m *gateway.Match, hosts []string) api.GatewayRule {
	out := api.GatewayRule{Paths: []string{grpcPath(m.Call)}, Hosts: hosts}
	if m.Path != nil {
		out.Paths[0] = pathPattern(*m.Path.Type, *m.Path.Value)
	}
	if m.Method != nil {
		out.Methods = []string{string(*m.Method)}
	}
	for _, h := range firstOfName(m.Headers, headerName) {
		out.Headers = append(out.Headers, matchValue(string(h.Name), string(*h.Type), h.Value))
	}
	for _, q := range firstOfName(m.QueryParams, paramName) {
		out.QueryParams = append(out.QueryParams, matchValue(string(q.Name), string(*q.Type), q.Value))
	}
	return out
}

func pathPattern(kind gatewayv1.PathMatchType, value string) string {
	switch kind {
	case gatewayv1.PathMatchExact:
		return value
	case gatewayv1.PathMatchRegularExpression:
		return regexPrefix + value
	default:
		return value + wildcardSuffix
	}
}

func matchValue(name, kind, value string) api.GatewayValue {
	out := api.GatewayValue{Name: name, Value: value}
	if kind != string(gatewayv1.HeaderMatchExact) {
		out.Type = kind
	}
	return out
}

// grpcPath returns the HTTP/2 path of the calls that match: /<service>/<method>.
func grpcPath(m *gatewayv1.GRPCMethodMatch) string {
	if m == nil {
		return anyRequest
	}
	service, method, exact := ptr.Deref(m.Service, ""), ptr.Deref(m.Method, ""), *m.Type == gatewayv1.GRPCMethodMatchExact
	segment := func(value string) string {
		switch {
		case value == "":
			return "[^/]+"
		case exact:
			return regexp.QuoteMeta(value)
		default:
			return "(?:" + value + ")"
		}
	}
	switch {
	case service == "" && method == "":
		return anyRequest
	case exact && service != "":
		return "/" + service + "/" + cmp.Or(method, wildcardSuffix)
	default:
		return regexPrefix + "/" + segment(service) + "/" + segment(method)
	}
}

// mostGeneral returns the hostnames that no other hostname includes, sorted; nil for
// any.
func mostGeneral(hosts []string) []string {
	var out []string
	for _, h := range hosts {
		if h != "" && !slices.ContainsFunc(hosts, func(other string) bool {
			both, ok := gateway.CommonHostname(h, other)
			return other != h && ok && both == h
		}) {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
