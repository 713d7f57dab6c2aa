package webhookconfig

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// notBeingDeleted is the condition of objects that are annotated. An object that
// server-side apply creates may have a deletionTimestamp in its manifest.
const notBeingDeleted = "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)"

// Mutating returns the mutating configuration. Its first webhook writes annotations on
// policies and routes: it is not called for a DELETE, for other kinds, or for objects that
// are being deleted. The second one answers EffectivePolicyReviews.
func (c Configuration) Mutating() *WebhookConfig {
	return c.configuration("MutatingWebhookConfiguration", mutating(c.webhook(mutateWebhook, PathMutate,
		rules(append(routes(), c.Policies...), admissionregistrationv1.Create, admissionregistrationv1.Update),
		condition("not-being-deleted", notBeingDeleted))), c.reviews())
}

// mutating completes a webhook of the mutating configuration.
func mutating(hook webhook) webhook {
	hook.SideEffects = new(admissionregistrationv1.SideEffectClassNone)
	hook.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
	return hook
}

// reviews returns the webhook that answers EffectivePolicyReviews. They are not stored, so
// that failurePolicy Fail blocks no write: without a server a dry run must fail, since the
// API server would return the status of the request. The namespace of the server is
// included for the same reason.
func (c Configuration) reviews() webhook {
	hook := mutating(c.webhook(reviewWebhook, PathReview,
		rules([]Resource{{api.Group, "v1alpha1", "effectivepolicyreviews", true}}, admissionregistrationv1.Create)))
	hook.FailurePolicy, hook.NamespaceSelector = new(admissionregistrationv1.Fail), &metav1.LabelSelector{}
	return hook
}
