// Package spec holds the cases that the specifications of policy attachment
// give themselves, as tests: the examples and tables of GEP-713, as it is and
// as it was in 2023, of Gateway API's older page on Policy Attachment, and the
// worked results of docs/semantics.md. What is expected is what they say.
package spec
