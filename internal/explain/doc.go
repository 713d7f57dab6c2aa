// Package explain says what became of policies: the items, explanations and outcomes of
// the output, and what a reader may see of them.
//
// No file calls one that is listed after it: state, route, output, explain, outcome, hides.
package explain
