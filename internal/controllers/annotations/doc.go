// Package annotations computes the annotations of routes and policies, and keeps them
// up to date when writes to other objects make them stale. It also maintains the
// annotations and conditions that mark the objects that policies affect (GEP-713,
// "Target object status"). Together these are called marks.
//
// A Controller observes changes of the store, determines the objects whose marks they
// may change, and writes the objects whose marks differ from the computed ones. It does
// not trust existing marks, and its writes are evaluated at admission like all others.
//
// The files, by the question that they answer:
//
//   - annotation, routetext, policytext: what an annotation says, and how long it may be
//   - marks: which annotations and conditions an object should have, and how many
//   - controller, reconcile, impact: when they are computed again, and of which objects
//   - apiserver: how they are written
package annotations
