package webhook

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/decode"
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
	metadata := decode.Field(data, "metadata")
	return inflight.Precondition{UID: types.UID(unquoted(decode.Field(metadata, "uid"))), Version: unquoted(decode.Field(metadata, "resourceVersion"))}
}

// hasGeneratedName reports whether a request creates an object with generateName: if
// the name exists, the API server generates another one.
func hasGeneratedName(r *admissionv1.AdmissionRequest) bool {
	return r.Operation == admissionv1.Create && unquoted(decode.Field(decode.Field(r.Object.Raw, "metadata"), "generateName")) != ""
}

// removesLastFinalizer reports whether a request removes the last finalizer of an object
// that is being deleted.
func removesLastFinalizer(r *admissionv1.AdmissionRequest) bool {
	if r.Operation != admissionv1.Update {
		return false
	}
	before, after := decode.Field(r.OldObject.Raw, "metadata"), decode.Field(r.Object.Raw, "metadata")
	return notEmpty(decode.Field(before, "deletionTimestamp")) && notEmpty(decode.Field(before, "finalizers")) && !notEmpty(decode.Field(after, "finalizers"))
}

// unquoted returns a JSON string without its quotes. The API server makes such values
// of letters, digits and dashes.
func unquoted(value []byte) string {
	return strings.Trim(string(value), `"`)
}

// notEmpty reports whether a JSON value is present and not empty.
func notEmpty(value []byte) bool {
	switch strings.Join(strings.Fields(string(value)), "") {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}
