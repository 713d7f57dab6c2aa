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
package webhook

import "overrule.dev/overrule/internal/webhookconfig"

// Paths that a Server answers.
const (
	PathValidate = webhookconfig.PathValidate
	PathMutate   = webhookconfig.PathMutate
	PathReview   = webhookconfig.PathReview
)
