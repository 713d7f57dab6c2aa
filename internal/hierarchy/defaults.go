package hierarchy

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// httpMatches returns the matches of an HTTPRoute's rule as the API server
// stores them, so that a rule from a file and the same rule from a cluster
// have one fingerprint.
func httpMatches(matches []gatewayv1.HTTPRouteMatch) []gatewayv1.HTTPRouteMatch {
	if len(matches) == 0 {
		matches = []gatewayv1.HTTPRouteMatch{{}}
	}
	out := make([]gatewayv1.HTTPRouteMatch, len(matches))
	for i := range matches {
		m := *matches[i].DeepCopy()
		if m.Path == nil {
			m.Path = &gatewayv1.HTTPPathMatch{}
		}
		fill(&m.Path.Type, gatewayv1.PathMatchPathPrefix)
		fill(&m.Path.Value, "/")
		for j := range m.Headers {
			fill(&m.Headers[j].Type, gatewayv1.HeaderMatchExact)
		}
		for j := range m.QueryParams {
			fill(&m.QueryParams[j].Type, gatewayv1.QueryParamMatchExact)
		}
		out[i] = m
	}
	return out
}

// grpcMatches is httpMatches for a GRPCRoute.
func grpcMatches(matches []gatewayv1.GRPCRouteMatch) []gatewayv1.GRPCRouteMatch {
	out := make([]gatewayv1.GRPCRouteMatch, len(matches))
	for i := range matches {
		m := *matches[i].DeepCopy()
		if m.Method != nil {
			fill(&m.Method.Type, gatewayv1.GRPCMethodMatchExact)
		}
		for j := range m.Headers {
			fill(&m.Headers[j].Type, gatewayv1.GRPCHeaderMatchExact)
		}
		out[i] = m
	}
	return out
}

func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
