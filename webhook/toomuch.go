package webhook

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// This file has what is answered to a review that is too much. It is Overloaded because of
// other reviews, and the client retries it: limiter.go and lane.go have the limits. It is
// TooMuch by itself, because it takes too long (deadline.go) or is too large. A write that is
// TooMuch for the guard, or for the log of writes in flight, has their message.

const (
	overloadMessage = "too many concurrent admission reviews; retry in 1s"
	// tooMuchMessage is the denial of an EffectivePolicyReview whose answer takes too long.
	tooMuchMessage = "the answer takes too long; set spec.policyKinds or spec.object.section, or ask about an object with fewer paths"
)

func (s *Server) denyOverloaded() response {
	return s.denyUndecided(api.DenialOverloaded, overloadMessage)
}

func denyReviewOverloaded() response {
	return denyWithRetry(api.DenialOverloaded, "too many concurrent EffectivePolicyReviews; retry in 1s")
}

func denyReviewTooMuch() response { return deny(string(api.ReasonTooMuch), tooMuchMessage) }

// isTooMuch reports whether the response is a denial because the evaluation is too much,
// which the client does not retry.
func (r *response) isTooMuch() bool {
	return !r.Allowed && !r.retry && r.reason == string(api.ReasonTooMuch)
}

// deadlineMessage names the request that exceeds its deadline. The progress of its
// evaluation is not known.
func deadlineMessage(r *admissionv1.AdmissionRequest) string {
	return fmt.Sprintf("%s: evaluation of %s of %s (%d bytes) exceeds the webhook timeout; reduce the object "+
		"(fewer rules, listeners, targets or conditions), or contact the cluster administrator",
		api.ReasonTooMuch, r.Operation, refOf(r), len(r.Object.Raw)+len(r.OldObject.Raw))
}

// DefaultMaxObject is the largest request that etcd accepts by default
// (--max-request-bytes).
const DefaultMaxObject = 1536 << 10

// tooLarge reports whether etcd will refuse an object, so that it does not have to be
// tracked. Custom resources are stored as JSON, as a review has them, and the rest of
// the request to etcd makes them larger. Objects of built-in kinds are stored in another
// form. An object that is no larger than before was stored as it is: then the limit is
// not that of this etcd.
func tooLarge(r *admissionv1.AdmissionRequest, limit int64) bool {
	size := int64(len(r.Object.Raw))
	custom := r.Kind.Group != "" && r.Kind.Group != apiextensionsv1.GroupName
	return custom && r.SubResource == "" && size > limit && size > int64(len(r.OldObject.Raw))
}

func tooLargeMessage(r *admissionv1.AdmissionRequest, limit int64) string {
	return fmt.Sprintf("%s: %s is too large: %d bytes, the limit is %d (--max-object-bytes); split the object or remove annotations",
		api.ReasonTooMuch, refOf(r), len(r.Object.Raw), limit)
}
