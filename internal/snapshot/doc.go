// Package snapshot holds the objects that judging needs, as immutable snapshots.
//
// A View is one moment. An event makes a new one by copy-on-write, and
// View.With answers "what if" in the same way, so that neither costs more the
// more objects there are. Readers never lock.
package snapshot
