// Package constraint compiles PolicyConstraints and ClusterPolicyConstraints: which paths
// they select, and what they require of the effective policy there.
package constraint
