package webhook

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/webhookconfig"
)

// metadata is the part of an object's metadata that concerns the write itself.
type metadata struct {
	Metadata struct {
		Annotations     map[string]string       `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

// metadataMarkers are the names of the fields of metadata as they stand in JSON: an
// object without any of them, as most are, does not have to be decoded again. The API
// server writes them unescaped, and in other places (managedFields, the last applied
// manifest) they are not quoted like this.
var metadataMarkers = [][]byte{[]byte(`"` + api.AnnotationAcknowledge + `"`), []byte(`"ownerReferences"`)}

func parseMetadata(data []byte) (*metadata, error) {
	if !slices.ContainsFunc(metadataMarkers, func(m []byte) bool { return bytes.Contains(data, m) }) {
		return &metadata{}, nil
	}
	return decode.As[metadata](data)
}

// readMetadata fills in what the metadata of the objects of a request say about the
// write itself: its acknowledgement, new owners, garbage collection.
func readMetadata(c *guard.Change, r *admissionv1.AdmissionRequest) error {
	after, err := parseMetadata(r.Object.Raw)
	if err != nil {
		return fmt.Errorf("object.metadata: %w", err)
	}
	c.Acknowledged = after.Metadata.Annotations[api.AnnotationAcknowledge]
	if c.Operation == guard.Create {
		return nil
	}
	before, err := parseMetadata(r.OldObject.Raw)
	switch {
	case err != nil:
		return fmt.Errorf("oldObject.metadata: %w", err)
	case c.Operation == guard.Delete:
		c.Acknowledged = before.Metadata.Annotations[api.AnnotationAcknowledge]
		c.GarbageCollected = len(before.Metadata.OwnerReferences) > 0 && webhookconfig.IsGarbageCollector(r.UserInfo.Username)
	default:
		c.Owner = guard.NewOwners(before.Metadata.OwnerReferences, after.Metadata.OwnerReferences)
	}
	return nil
}

// preconditionOf returns the uid and resourceVersion by which the write is recognized
// when it is observed: the uid that the API server gave to a created object, or the
// version of the stored one. Absent values are left empty.
func preconditionOf(r *admissionv1.AdmissionRequest) inflight.Precondition {
	data := []byte(r.OldObject.Raw)
	if r.Operation == admissionv1.Create {
		data = r.Object.Raw
	}
	return metadataOf(data)
}

// metadataOf returns the uid and resourceVersion of an object.
func metadataOf(data []byte) inflight.Precondition {
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
	before := decode.Field(r.OldObject.Raw, "metadata")
	return notEmpty(decode.Field(before, "deletionTimestamp")) && notEmpty(decode.Field(before, "finalizers")) &&
		!notEmpty(decode.Field(decode.Field(r.Object.Raw, "metadata"), "finalizers"))
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
