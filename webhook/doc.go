// Package webhook is the admission handler: it decodes AdmissionReviews, evaluates
// each write with the guard, and answers with a decision, warnings and patches.
//
// A write that no server can evaluate now (not ready, draining) gets HTTP 503, and
// the API server retries it. A write that cannot be evaluated because of what it
// contains (panic, deadline, cost) is denied, so that no object can be crafted to
// bypass the evaluation. Overload is a denial with code 429, which kubectl retries.
//
// It also answers EffectivePolicyReviews, which are questions and not stored. These have
// limits of their own, so that they never take the place of a write.
//
// No file calls one that is listed after it:
//
//   - request, metadata, review: what a review says
//   - metrics, limiter, lane: for whom there is room
//   - deadline, decode, event, tracing, warning_shorten, warning, response: parts of an answer
//   - server, call: Server, and one call of a webhook with how far it has come
//   - toomuch: what is answered if too much is asked, or an object is too large
//   - admit: a slot for an evaluation, and its time
//   - validate, mutate, policyreview_question, policyreview: the evaluations of the three webhooks
//   - reject, evaluate: what is answered without one, and one on this replica
//   - coordinate: one on the replica that leads
//   - handler: from the socket to it
package webhook

import "overrule.dev/overrule/internal/webhookconfig"

// Paths that a Server answers.
const (
	PathValidate = webhookconfig.PathValidate
	PathMutate   = webhookconfig.PathMutate
	PathReview   = webhookconfig.PathReview
)
