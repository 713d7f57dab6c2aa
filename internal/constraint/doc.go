// Package constraint reads PolicyConstraints and ClusterPolicyConstraints: which
// paths they are about, and what they demand of the effective policy there.
package constraint
