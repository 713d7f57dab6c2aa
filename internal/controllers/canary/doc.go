// Package canary verifies periodically, through the API server, that Overrule evaluates
// writes. Each run sends dry-run writes: one that must be denied, and some that must be
// admitted. The results are exported as metrics and as a condition of the leader's Pod,
// and determine whether the webhooks may be armed.
package canary
