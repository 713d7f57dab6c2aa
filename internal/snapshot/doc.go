// Package snapshot holds the objects that evaluation depends on, as immutable snapshots.
//
// A View is the state at one point in time. An event creates a new one by copy-on-write,
// and View.With does the same for a hypothetical change, so the cost of both hardly
// depends on the number of objects. Readers never lock.
package snapshot
