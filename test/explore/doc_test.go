// Package explore runs the log of writes in flight (internal/inflight), the guard and the
// coordination of replicas against an API server that is a table, on a fake clock, and
// visits all histories within a bound.
//
// A history consists of steps. Some take no time: a review arrives at a replica and is
// evaluated, or is held in its evaluation or before its answer; it is released; the API
// server stores an admitted write, or never does; a replica receives an event of its watch,
// or drops the watch and lists. The others change replicas and the clock: handover, crash,
// restart, loss of the API server or of its responses, half-open connections between
// replicas, a Lease that is deleted, edited or replaced, a suspended process, a second, the
// end of a Lease, the expiry of writes. After each step the replicas run until nothing
// happens any more.
//
// # Property
//
// The writes that are stored can be ordered so that a guard which evaluates one after the
// other denies none. A write that was stored before another one was reviewed comes first.
// Two that were in flight together may have either order: if only one of the orders is
// allowed, the API server may store them in the other one, with the same result.
//
// # Bound
//
// With OVERRULE_DEPTH=n: all interleavings of two writes at two replicas with n steps of
// the second sort (faults), and of three writes with n-1; one review of each write, and one
// relist. Without it, in some seconds: two writes without a fault. The long part "explore"
// visits those of the first scenario with one fault, and three writes at one replica without
// a relist. A wait until the Lease has run out follows from a fault, and is not counted.
//
// The bounds of time are those of the protocol: the API server waits 3 s for an answer, and
// stores a write within 1.5 s of it or, as long as no Lease has run out, within 10 s of the
// request.
//
// Two histories that lead to the same state are continued once. The state is that of the
// table, the caches, the logs and the reviews, with the history of the second sort: the
// other steps do not change a Coordinator, except that it has caught up, which is part
// of the state. What the replicas do at the same moment has one order of many, that of the
// Go scheduler. Longer histories are taken at random (TestRandomHistories).
package explore
