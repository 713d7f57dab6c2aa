package webhook

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// isCanary reports whether a write is one of the canary's, which nobody shall
// take for what people do: neither metrics nor log count it. Anybody can label
// a dry run so; it is judged like all others, and nothing comes of it.
func isCanary(r *admissionv1.AdmissionRequest) bool {
	if r.DryRun == nil || !*r.DryRun || r.Operation != admissionv1.Create {
		return false
	}
	var o struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	return json.Unmarshal(r.Object.Raw, &o) == nil && o.Metadata.Labels[api.LabelCanary] != ""
}
