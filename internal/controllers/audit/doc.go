// Package audit evaluates the effective policies of the paths that an observed change
// affects, and reports violations whatever their cause: two concurrent writes through
// two replicas, writes while Overrule was not available, or objects that existed before
// a constraint.
//
// It does not affect admission and holds no lock while it evaluates: a run uses one
// view, in one goroutine.
package audit
