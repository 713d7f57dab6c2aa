package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/decode"
)

// httpMatches sets the defaults of the API server in the matches of an HTTPRoute's rule, so
// that a rule from a file and the same rule from a cluster have the same fingerprint.
func httpMatches(matches []gatewayv1.HTTPRouteMatch) []gatewayv1.HTTPRouteMatch {
	if len(matches) == 0 {
		matches = []gatewayv1.HTTPRouteMatch{{}}
	}
	for i := range matches {
		m := &matches[i]
		if m.Path == nil {
			m.Path = &gatewayv1.HTTPPathMatch{}
		}
		defaultTo(&m.Path.Type, gatewayv1.PathMatchPathPrefix)
		defaultTo(&m.Path.Value, "/")
		for j := range m.Headers {
			defaultTo(&m.Headers[j].Type, gatewayv1.HeaderMatchExact)
		}
		for j := range m.QueryParams {
			defaultTo(&m.QueryParams[j].Type, gatewayv1.QueryParamMatchExact)
		}
	}
	return matches
}

// grpcMatches is httpMatches for a GRPCRoute.
func grpcMatches(matches []gatewayv1.GRPCRouteMatch) []gatewayv1.GRPCRouteMatch {
	for i := range matches {
		m := &matches[i]
		if m.Method != nil {
			defaultTo(&m.Method.Type, gatewayv1.GRPCMethodMatchExact)
		}
		for j := range m.Headers {
			defaultTo(&m.Headers[j].Type, gatewayv1.GRPCHeaderMatchExact)
		}
	}
	return matches
}

func defaultTo[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// defaultRules sets the defaults of the API server in the rules of a route, for the
// fields that policies control. It modifies the spec.
func defaultRules(kind string, spec map[string]any) map[string]any {
	if spec == nil {
		spec = make(map[string]any)
	}
	if spec["rules"] == nil && kind == KindHTTPRoute {
		spec["rules"] = []any{map[string]any{}}
	}
	for _, rule := range decode.Objects(spec["rules"]) {
		if rule["matches"] == nil && kind == KindHTTPRoute {
			rule["matches"] = []any{map[string]any{}}
		}
		for _, m := range decode.Objects(rule["matches"]) {
			defaultMatch(kind, m)
		}
		for _, b := range decode.Objects(rule["backendRefs"]) {
			setDefault(b, "group", "")
			setDefault(b, "kind", KindService)
			setDefault(b, "weight", int64(1))
		}
	}
	return spec
}

func defaultMatch(kind string, m map[string]any) {
	switch kind {
	case KindHTTPRoute:
		setDefault(m, "path", map[string]any{})
	case KindGRPCRoute:
		if method, ok := m["method"].(map[string]any); ok {
			setDefault(method, "type", string(gatewayv1.GRPCMethodMatchExact))
		}
	}
	DefaultHTTPMatch(m)
}

// DefaultHTTPMatch sets the defaults of the API server in the fields that a match of an
// HTTPRoute has.
func DefaultHTTPMatch(m map[string]any) {
	for _, h := range append(decode.Objects(m["headers"]), decode.Objects(m["queryParams"])...) {
		setDefault(h, "type", string(gatewayv1.HeaderMatchExact))
	}
	if path, ok := m["path"].(map[string]any); ok {
		setDefault(path, "type", string(gatewayv1.PathMatchPathPrefix))
		setDefault(path, "value", "/")
	}
}

func setDefault(object map[string]any, name string, value any) {
	if object[name] == nil {
		object[name] = value
	}
}
