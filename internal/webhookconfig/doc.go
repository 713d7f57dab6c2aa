// Package webhookconfig keeps the ValidatingWebhookConfiguration and the
// MutatingWebhookConfiguration that lead the API server to the admission handler:
// their rules, CA bundle, failurePolicy and paths.
//
// The files, by the question that they answer:
//
//   - configuration, validating, mutating: the webhooks, and their timeouts
//   - resources, conditions, systemwrites: which writes the API server sends, and which not
//   - reconciler: when the configurations are written; registration: what others may edit
//   - static: what those lack that users apply; probe: whether the API server reaches the
//     webhooks
//   - problem: what is wrong now
package webhookconfig

// Paths of the admission handler.
const (
	PathValidate = "/validate"
	PathMutate   = "/mutate"
	PathReview   = "/review"
)
