// Package webhookconfig keeps the ValidatingWebhookConfiguration and the
// MutatingWebhookConfiguration that lead the API server to the admission handler:
// their rules, CA bundle, failurePolicy and paths.
package webhookconfig

// Paths of the admission handler.
const (
	PathValidate = "/validate"
	PathMutate   = "/mutate"
	PathReview   = "/review"
)
