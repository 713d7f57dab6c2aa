// Command cost is the regression gate: it does the same few writes, events and
// walks over a small world of its own, counts what each of them costs, and fails
// where that is a good deal more than a stored baseline says.
//
// It counts what a noisy machine does not change: heap allocations and their
// bytes, the heap that an object keeps, and, in a binary that was built for
// coverage, how many statements of ours were executed. hack/cost runs it both
// ways.
package main
