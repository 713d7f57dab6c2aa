// Package spec tests the examples and tables of the specifications of policy
// attachment: GEP-713 in its current version and that of 2023, Gateway API's
// older page on Policy Attachment, and the worked results of docs/semantics.md.
// The expected values are those of the texts.
package spec
