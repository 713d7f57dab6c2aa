// Package explain says what became of policies: the items, explanations and outcomes of
// the output, and what a reader may see of them.
//
// No file calls one that is listed after it: state, route, output, explain, outcome, hides.
// State is what became of a policy on one path, outcome that on all of them.
package explain
