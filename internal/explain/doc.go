// Package explain says what became of policies: the items, explanations and outcomes of
// the output, and what a reader may see of them.
//
// No file calls one that is listed after it:
//
//   - state: what became of a policy on one path
//   - route: the fields of the route that policies set, and whose value is shown if several do
//   - output, explain: items and explanations
//   - outcome: what became of a policy on all paths
//   - hides: what a reader may not see
package explain
