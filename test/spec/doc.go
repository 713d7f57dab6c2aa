// Package spec tests the examples and tables of the specifications of policy
// attachment: GEP-713 in its current version and that of 2023, and Gateway API's
// older page on Policy Attachment. The expected values are those of the texts.
package spec
