// Package cel compiles and evaluates the conditions (`when`) of policy blocks
// (SEMANTICS section 3) and the validations of constraints. It is the only importer of
// cel-go.
//
// A condition reads two variables: spec, the effective spec so far, and self,
// an object with it (self.spec). Besides the standard library it may use
// the strings (without format), sets, math, bindings and two-variable
// comprehension extensions of cel-go. A validation reads Variables, and may be
// checked against the schema of a policy kind (CheckTypes); all else is the same.
//
// Three things differ from plain cel-go:
//
//   - A missing key of the spec is distinguished from every other error, and is
//     reported with its path, unless it is inside a comprehension.
//   - has() is an error for anything but a map.
//   - The cost of operations whose time can exceed the size of their arguments
//     (regular expressions, deep equality, replace, sets) is estimated before they
//     run, so that the cost limit bounds the time, too.
//
// The files, by the question that they answer:
//
//   - condition, validation, variables: what an expression reads, and its answer
//   - compile, environment: which functions there are, and which expressions are refused
//   - schema: which fields and types the schema of a kind allows (CheckTypes)
//   - limits, cost, valuesize, regex: what an evaluation may cost, and what an operation
//     costs (all such numbers are in limits)
//   - value, opaque, reads: how JSON becomes values of CEL, which of them must not be read,
//     and which were read
//   - errors: what an error says, and whether it may quote values
//   - answercache: which answers are kept
package cel
