package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/inflight"
)

// preconditionOf returns the uid and resourceVersion by which the write is recognized
// when it is observed: the uid that the API server gave to a created object, or the
// version of the stored one. Absent values are left empty.
func preconditionOf(r *admissionv1.AdmissionRequest) inflight.Precondition {
	data := []byte(r.OldObject.Raw)
	if r.Operation == admissionv1.Create {
		data = r.Object.Raw
	}
	metadata := jsonField(data, "metadata")
	return inflight.Precondition{UID: types.UID(unquoted(jsonField(metadata, "uid"))), Version: unquoted(jsonField(metadata, "resourceVersion"))}
}

// hasGeneratedName reports whether a request creates an object with generateName: if
// the name exists, the API server generates another one.
func hasGeneratedName(r *admissionv1.AdmissionRequest) bool {
	return r.Operation == admissionv1.Create && unquoted(jsonField(jsonField(r.Object.Raw, "metadata"), "generateName")) != ""
}

// removesLastFinalizer reports whether a request removes the last finalizer of an object
// that is being deleted.
func removesLastFinalizer(r *admissionv1.AdmissionRequest) bool {
	if r.Operation != admissionv1.Update {
		return false
	}
	before, after := jsonField(r.OldObject.Raw, "metadata"), jsonField(r.Object.Raw, "metadata")
	return notEmpty(jsonField(before, "deletionTimestamp")) && notEmpty(jsonField(before, "finalizers")) && !notEmpty(jsonField(after, "finalizers"))
}
