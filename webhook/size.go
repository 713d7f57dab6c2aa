package webhook

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// DefaultMaxObject is the largest request that etcd takes by default
// (--max-request-bytes).
const DefaultMaxObject = 1536 << 10

// tooLarge reports whether etcd will refuse an object, so that nothing has to be
// kept of it. Custom resources are stored as JSON, as a review has them, and what
// the request to etcd has besides makes it larger. Objects of Kubernetes' own
// kinds are stored in another form. An object that is no larger than before was
// stored as it is: then the limit is not that of this etcd.
func (s *Server) tooLarge(r *admissionv1.AdmissionRequest) bool {
	size := int64(len(r.Object.Raw))
	custom := r.Kind.Group != "" && r.Kind.Group != apiextensionsv1.GroupName
	return custom && r.SubResource == "" && size > s.MaxObject && size > int64(len(r.OldObject.Raw))
}

func (s *Server) tooLargeMessage(r *admissionv1.AdmissionRequest) string {
	ref := api.Ref{Group: r.Kind.Group, Kind: r.Kind.Kind, Namespace: r.Namespace, Name: r.Name}
	return fmt.Sprintf("%s: %s has %d bytes, and etcd stores at most %d (--max-object-bytes of overrule): "+
		"split the object, or take annotations off it", api.ReasonTooMuch, ref, len(r.Object.Raw), s.MaxObject)
}
