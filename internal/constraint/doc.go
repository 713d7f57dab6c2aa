// Package constraint compiles PolicyConstraints and ClusterPolicyConstraints: which paths
// they select, and what they require of the effective policy there.
//
//   - constraint, target: what is compiled, and the paths that it selects
//   - limits: how long quantities, places and patterns may be, and what patterns may cost
//   - rule, bounds, place: what required, min, max, enum, pattern and per require of a field
//   - validation, path: expressions, and the variables that they have
//   - schema: whether the fields exist in the kind
//   - evaluate, unmet: what an effective policy does not meet, and whether that is worse than before
//   - relax: whether an edit denies less
package constraint
