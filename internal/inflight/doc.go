// Package inflight judges writes with those in mind that were admitted a moment
// ago and are not seen in the cache yet. Two writes that are each fine alone and
// break something together then do not both pass one server.
//
// An admitted write may be stored, or may never be: another webhook refuses it,
// say. So a decision must hold with and without each of those that may matter to
// the same paths (effective.Footprint). Where it does not, the write waits a
// little for them to be seen, and then is to be tried again: by then they are
// seen, or gone.
//
// What is never stored stays in flight until the API server cannot store it any
// more. So each user and each namespace has a share of what is kept (shares), and
// no share is all of it.
package inflight
