package manifest

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
)

// fits holds the values of a route to the types that Gateway API gives them, as
// the API server does: the store looks at little of a route. Fields that are
// not Gateway API's are let through.
func fits(kind api.PolicyKind, data []byte) error {
	if !hierarchy.IsRoute(kind) {
		return nil
	}
	var into any
	switch kind.Kind {
	case hierarchy.KindGRPCRoute:
		into = new(gatewayv1.GRPCRoute)
	case hierarchy.KindTCPRoute:
		into = new(gatewayv1.TCPRoute)
	case hierarchy.KindTLSRoute:
		into = new(gatewayv1.TLSRoute)
	case hierarchy.KindUDPRoute:
		into = new(gatewayv1.UDPRoute)
	default:
		into = new(gatewayv1.HTTPRoute)
	}
	return json.UnmarshalCaseSensitivePreserveInts(data, into)
}
