// Package schema validates effective specs against the schema of their kind: two
// valid policies can merge into an invalid one.
//
// The API server validates each policy by itself when it is written. So only the
// cross-rule validations of a schema count here, those that involve more than one
// rule: a oneOf, a maximum of entries, a CEL rule about two fields. Most kinds have
// few of them, and many have none, so that there is nothing to check.
//
// The files, by the question that they answer:
//
//   - checker: whether an effective spec is valid, the cache of that, and what it may cost
//   - plan, reduce, field_refs: which validations of a schema count, and what a CEL rule may
//     cost
//   - requirement: whether a validation involves several blocks
//   - object: the object that is validated
//   - standalone: whether one policy by itself is valid
//   - problem: what an error says
package schema
