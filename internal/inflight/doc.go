// Package inflight evaluates writes together with the writes in flight: those that were
// admitted and are not observed in the cache yet. Otherwise two writes that are each
// valid alone, and together break a constraint, could both be admitted by one server.
//
// An admitted write may be stored, or never be: another webhook may reject it. So a
// decision must hold with and without each write in flight that can affect the same paths
// (effective.Footprint). If it does not, the write waits a little for them to be
// observed, and then is denied with a retry: by then they are observed, or have expired.
//
// A write that is never stored stays in flight until the API server cannot store it any
// more. So each user and each namespace has a share of the writes in flight (shares), and
// no share is all of them.
//
// No file calls one that is listed after it:
//
//   - write, denials, latency, shares: a write in flight, and how many may be
//   - entry, index, overlay: the admitted ones, and views with them
//   - log, expiry: Log, and how it forgets them
//   - evaluation, transfer: an evaluation with them, and the handover to another replica
package inflight
