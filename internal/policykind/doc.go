// Package policykind compiles PolicyProfiles, which define where the targets, blocks
// and rules of a kind of policies are, and reads policies with them.
//
// The files, by the question that they answer:
//
//   - profiles, label: where a profile comes from: built in, a PolicyProfile, or the label of
//     a CRD
//   - compile, check: whether a profile is valid, its defaults, and paths that the schema
//     lacks
//   - kind, controllers: what a compiled profile says, and whose gateways read the kind
//   - definition, schema, coerce, scale: the CRD of a kind: what an edit of it changes, and
//     how stored objects are read by it
//   - policy, read, target: a policy, its blocks with their strategies and conditions, its
//     targets
//   - split, rulegroup, protectiongroup, groupname: what is one rule, which rules belong
//     together, and what readers call these
//   - place, direction, routecontent: content that has an effect only at some listeners, in
//     one direction or for single routes; backends: those that a policy refers to
//   - rank: the order of the kind; pack: what a policy takes in memory
//   - field, fieldpath: the field of a rule or target in messages, and paths in profiles
package policykind
