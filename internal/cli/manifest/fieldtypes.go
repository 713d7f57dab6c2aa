package manifest

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
)

// validateTypes validates the types of the fields of a route, as the API server
// does: the snapshot reads only a few of them. Unknown fields of routes are ignored.
// In constraints they are errors: a constraint that is understood only in part
// would give wrong results.
func validateTypes(kind api.PolicyKind, data []byte) error {
	switch {
	case kind == constraint.Kind:
		return unmarshalStrict(data, new(api.PolicyConstraint))
	case kind == constraint.ClusterKind:
		return unmarshalStrict(data, new(api.ClusterPolicyConstraint))
	case !gateway.IsRoute(kind):
		return nil
	}
	var into any
	switch kind.Kind {
	case gateway.KindGRPCRoute:
		into = new(gatewayv1.GRPCRoute)
	case gateway.KindTCPRoute:
		into = new(gatewayv1.TCPRoute)
	case gateway.KindTLSRoute:
		into = new(gatewayv1.TLSRoute)
	case gateway.KindUDPRoute:
		into = new(gatewayv1.UDPRoute)
	default:
		into = new(gatewayv1.HTTPRoute)
	}
	return json.UnmarshalCaseSensitivePreserveInts(data, into)
}

func unmarshalStrict(data []byte, into any) error {
	unknown, err := json.UnmarshalStrict(data, into)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	return err
}
