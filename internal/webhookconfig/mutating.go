package webhookconfig

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// notBeingDeleted is the condition of objects that are annotated. An object that
// server-side apply creates may have a deletionTimestamp in its manifest.
const notBeingDeleted = "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)"

// Mutating returns the mutating configuration. Its first webhook writes annotations on
// policies and routes: it is not called for a DELETE, for other kinds, or for objects that
// are being deleted. The second one answers EffectivePolicyReviews.
func (c Configuration) Mutating() *ac.MutatingWebhookConfigurationApplyConfiguration {
	hook := ac.MutatingWebhook().
		WithName(mutateWebhook).
		WithClientConfig(c.clientConfig(PathMutate)).
		WithRules(rules(append(routes(), c.Policies...), admissionregistrationv1.Create, admissionregistrationv1.Update)...).
		WithMatchConditions(condition("not-being-deleted", notBeingDeleted)).
		WithFailurePolicy(c.FailurePolicy).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(c.namespaceSelector()).
		WithObjectSelector(acmeta.LabelSelector()). // explicit, so that a narrower one is reverted
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(c.timeoutSeconds()).
		WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).
		WithAdmissionReviewVersions("v1")
	return ac.MutatingWebhookConfiguration(c.Name).WithLabels(labels()).WithAnnotations(c.annotations()).WithOwnerReferences(c.ownerReferences()...).
		WithWebhooks(hook, c.reviews())
}

// reviews returns the webhook that answers EffectivePolicyReviews. They are not stored, so
// that failurePolicy Fail blocks no write: without a server a dry run must fail, since the
// API server would return the status of the request. The namespace of the server is
// included for the same reason.
func (c Configuration) reviews() *ac.MutatingWebhookApplyConfiguration {
	return ac.MutatingWebhook().
		WithName(reviewWebhook).
		WithClientConfig(c.clientConfig(PathReview)).
		WithRules(rules([]Resource{{api.Group, "v1alpha1", "effectivepolicyreviews", true}}, admissionregistrationv1.Create)...).
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(acmeta.LabelSelector()).
		WithObjectSelector(acmeta.LabelSelector()).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(c.timeoutSeconds()).
		WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).
		WithAdmissionReviewVersions("v1")
}
