// Package coordination makes several replicas evaluate as one. The replica that holds the
// Lease evaluates writes, the others forward them to it, so that all writes meet in one
// log of writes in flight (internal/inflight). The package decides who evaluates, hands
// over from one leader to the next, and transports what replicas tell each other.
//
// It implements the protocol of test/model: "rule N" in comments is that of
// test/model/README.md, and the letters are its bounds:
//
//	V  a leader evaluates only until V after it sent the last renewal that succeeded
//	T  the API server waits T for a response: timeoutSeconds of the webhook
//	S  the API server stores a write within S of the response, or never (assumed)
//	D  two clocks differ by at most D while a lease runs out (assumed)
//
// The lease lasts longer than V + T + S + D. Since each review has its own T, V is what
// remains of the lease (Bounds).
//
// The files, by the question that they answer:
//
//   - coordinator: when a replica takes the Lease, catches up, evaluates and steps down
//   - place: where a write is evaluated, and whether the term is still valid for it
//   - handover: to which replica a leader hands over, and how long it waits for that
//   - lease: what the Lease says, and the version of the protocol
//   - peers: what replicas send each other; metrics
//   - bounds: V, T, S and D with their defaults, and the intervals of requests
package coordination
