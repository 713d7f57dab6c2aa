package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/decode"
)

// setDefaults sets the defaults of the API server, so that a match from a file and the same
// one from a cluster have the same fingerprint.
func (m *Match) setDefaults() {
	switch {
	case m.Path != nil:
		defaultTo(&m.Path.Type, gatewayv1.PathMatchPathPrefix)
		defaultTo(&m.Path.Value, "/")
	case m.Call != nil:
		defaultTo(&m.Call.Type, gatewayv1.GRPCMethodMatchExact)
	}
	for i := range m.Headers {
		defaultTo(&m.Headers[i].Type, gatewayv1.HeaderMatchExact)
	}
	for i := range m.QueryParams {
		defaultTo(&m.QueryParams[i].Type, gatewayv1.QueryParamMatchExact)
	}
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
