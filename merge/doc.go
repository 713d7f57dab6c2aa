// Package merge computes effective policies: it folds a stack of policies into the
// effective rules, each with its origin, and the lost rules, each with the policy that
// beat it.
//
// The package is pure: it does not edit its inputs, reads no clock and depends on the
// standard library alone. The same layers in any order give the same result.
package merge
