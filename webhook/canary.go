package webhook

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// isCanary reports whether a write is one of the canary, which metrics and log leave
// out. Any client can send the same write, but gains nothing by it: it is of a kind that
// does not exist, or a route without a parent. Other objects with the label count as any
// other write.
func isCanary(r *admissionv1.AdmissionRequest) bool {
	if r.DryRun == nil || !*r.DryRun || r.Operation != admissionv1.Create {
		return false
	}
	var o struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Group           string            `json:"group"`
			ParentRefs      []json.RawMessage `json:"parentRefs"`
			DefaultGateways string            `json:"useDefaultGateways"`
		} `json:"spec"`
	}
	if json.Unmarshal(r.Object.Raw, &o) != nil || o.Metadata.Labels[api.LabelCanary] == "" {
		return false
	}
	switch kindOf(r) {
	case policykind.KindProfile:
		return o.Spec.Group == api.GroupCanary
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindHTTPRoute}:
		return len(o.Spec.ParentRefs) == 0 && o.Spec.DefaultGateways == ""
	default:
		return false
	}
}
