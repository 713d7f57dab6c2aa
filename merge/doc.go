// Package merge computes effective policies: the fold of a stack of policies
// into the rules that are left, each with its origin, and for each rule that
// did not make it, what beat it.
//
// It is pure. Values come in and values go out, inputs are never edited, no
// clock is read and nothing of Kubernetes is known here. The same layers in
// any order give the same result.
package merge
