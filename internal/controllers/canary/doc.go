// Package canary tries again and again, through the real API server, whether
// Overrule judges writes: one that has to be rejected, and some that have to
// pass, each a dry run. What it found is told as metrics and as a condition of
// the leader's Pod, and decides whether the webhooks may be armed.
package canary
