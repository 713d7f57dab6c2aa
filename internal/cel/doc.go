// Package cel compiles and evaluates the conditions (`when`) of policy blocks,
// as section 3 of the semantics defines them, and the validations of
// constraints. It is the only importer of cel-go.
//
// A condition reads two variables: spec, the effective spec so far, and self,
// an object that holds it (self.spec). Besides the standard library it may use
// the strings (without format), sets, math, bindings and two-variable
// comprehension extensions of cel-go. A validation reads Variables, and may be
// checked against the schema of a policy kind (CheckTypes); all else is the same.
//
// Three things differ from plain cel-go:
//
//   - A key that a map of the spec lacks is told apart from every other
//     failure, with its address; only where it is not inside a comprehension.
//   - has() looks at maps alone: on anything else it is an error.
//   - Operations whose time can outgrow the size of what they are given
//     (regular expressions, deep equality, replace, sets) are weighed before
//     they run, so that the cost limit bounds the time, too.
package cel
