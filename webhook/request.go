package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

func kindOf(r *admissionv1.AdmissionRequest) api.PolicyKind {
	return api.PolicyKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
}

func isDryRun(r *admissionv1.AdmissionRequest) bool { return r.DryRun != nil && *r.DryRun }

func refOf(r *admissionv1.AdmissionRequest) api.Ref {
	return api.Ref{Group: r.Kind.Group, Kind: r.Kind.Kind, Namespace: r.Namespace, Name: r.Name}
}
