package webhook

import (
	"bytes"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/webhookconfig"
)

// head is what the metadata of an object say about the write itself.
type metadata struct {
	Metadata struct {
		Annotations     map[string]string       `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

// marks are the names by which JSON without any of what a head holds is known:
// most writes then need no second look. The API server writes them unescaped,
// and those of other places (managedFields, the last applied manifest) are not
// quoted like this.
var metadataMarkers = [][]byte{[]byte(`"` + api.AnnotationAcknowledge + `"`), []byte(`"ownerReferences"`)}

func parseMetadata(data []byte) (*metadata, error) {
	if !slices.ContainsFunc(metadataMarkers, func(m []byte) bool { return bytes.Contains(data, m) }) {
		return &metadata{}, nil
	}
	return decode.As[metadata](data)
}

// heed fills in what the metadata of the objects of a request say about the
// write itself.
func readMetadata(c *guard.Change, r *admissionv1.AdmissionRequest) error {
	now, err := parseMetadata(r.Object.Raw)
	if err != nil {
		return fmt.Errorf("object: read its metadata: %w", err)
	}
	c.Acknowledged = now.Metadata.Annotations[api.AnnotationAcknowledge]
	if c.Operation == guard.Create {
		return nil
	}
	was, err := parseMetadata(r.OldObject.Raw)
	switch {
	case err != nil:
		return fmt.Errorf("oldObject: read its metadata: %w", err)
	case c.Operation == guard.Delete:
		c.Acknowledged = was.Metadata.Annotations[api.AnnotationAcknowledge]
		c.GarbageCollected = len(was.Metadata.OwnerReferences) > 0 && webhookconfig.IsGarbageCollector(r.UserInfo.Username)
	default:
		c.Owner = guard.NewOwners(was.Metadata.OwnerReferences, now.Metadata.OwnerReferences)
	}
	return nil
}
