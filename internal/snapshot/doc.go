// Package snapshot holds the objects that evaluation depends on, as immutable snapshots.
//
// A View is the state at one point in time. An event creates a new one by copy-on-write,
// and View.With does the same for a hypothetical change, so the cost of both hardly
// depends on the number of objects. Readers never lock.
//
// The files, by the question that they answer:
//
//   - view, index, cursor: the objects, how one is found by what it refers to, and how two
//     views are walked side by side
//   - store, version: the current view, what it still waits for, and which resourceVersion it
//     has
//   - event, changes: who is told of a change
//   - same: whether two states of an object differ in what evaluation depends on
//   - marks: which annotations and conditions of this server an object has
//   - decode: objects from JSON
//   - definition, kinds, kindchange: which kinds are read, in which version and by which
//     profile, and what a write of a definition or profile changes about that
//   - target, targeting, reference: which policies are on an object: those that name or
//     select it, by a ReferenceGrant if need be, and those that it names itself
//   - constraint: the constraints in force, and what they look up
package snapshot
