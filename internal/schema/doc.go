// Package schema checks effective specs against the schema of their kind: two
// valid policies can merge into one that is not.
//
// What a policy says by itself was checked when it was written. So only those
// parts of a schema count here that see several rules at once: a one-of, a
// maximum of entries, a rule in CEL about two fields. Most kinds have few of
// them, and many have none, so that there is nothing to check.
package schema
