// Package annotations computes the annotations of routes and policies, and keeps them
// up to date when writes to other objects make them stale. It also maintains the
// annotations and conditions that mark the objects that policies affect (GEP-713,
// "Target object status"). Together these are called marks.
//
// A Controller observes changes of the store, determines the objects whose marks they
// may change, and writes the objects whose marks differ from the computed ones. It does
// not trust existing marks, and its writes are evaluated at admission like all others.
package annotations
