// Package annotations keeps the marks true that stand on objects: the annotations of
// routes and policies, which a write elsewhere makes stale, and those that tell an
// object that policies affect it (GEP-713, "Target object status").
//
// It hears from the store what changed, works out which objects that may matter to,
// and writes those whose marks differ from what is computed now. It trusts no mark,
// and what it writes is judged like any other write.
package annotations
