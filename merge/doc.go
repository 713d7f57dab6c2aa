// Package merge computes effective policies: it folds a stack of policies into the
// effective rules, each with its origin, and the lost rules, each with the policy that
// beat it.
//
// The package is pure: it does not edit its inputs, reads no clock and depends on the
// standard library alone. The same layers in any order give the same result.
//
// Comments that name a section of SEMANTICS refer to the rules of the project, which
// docs/semantics.md and the pages that it links to describe:
//
//	1, words                      Terms
//	2, order                      Order of the policies
//	3, the fold                   The fold; when; unset; Rule keys
//	4, worked results             testdata/folds/worked-results.yaml
//	5, where sources disagree     Two policies on one target; Which policies are on a path
//	6, states                     Policy states
//	7, attachment                 Which policies are on a path
//	8, denials and warnings       docs/reasons.md
//	9, where a request goes       Which rule serves a request
//
// The files, by the question that they answer:
//
//   - fold, applyblock, group: how layers, blocks and policies on one target are applied
//   - layer: which of two policies is higher; policy: blocks, strategies, conditions
//   - unset, rulegroup: rules that remove others, and groups of which only one policy has
//     rules
//   - overlay, key, value, spec: sorted rules, their keys, their values, and the spec that
//     they make
//   - loss, outcome, result: what a policy lost and to whom, and what is returned
//   - buffers: memory that is reused
package merge
