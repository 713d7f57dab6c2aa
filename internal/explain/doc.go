// Package explain says what became of policies: the items, explanations and outcomes of
// the output, and what a reader may see of them.
//
// No file calls one that is listed after it: state, route, output, explain, outcome, hides.
// State is what became of a policy on one path, outcome that on all of them. Route has the
// fields of the route that policies set, and which kind's value is shown if several set one.
package explain
