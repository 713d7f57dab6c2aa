// Package webhook is the admission door: AdmissionReviews in, the guard asked,
// answers out.
//
// What cannot be judged because nobody could (not ready yet, draining) is
// answered with HTTP 503, which the API server retries. What cannot be judged
// because of the write itself (a panic, the deadline, the cost) is denied, so
// that no write can be crafted to pass unjudged. Overload is a denial with code
// 429, which kubectl retries.
package webhook

import "overrule.dev/overrule/internal/webhookconfig"

// Paths under which a Server answers.
const (
	PathValidate = webhookconfig.PathValidate
	PathMutate   = webhookconfig.PathMutate
)
